import math
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from linklab.report import publication, spread
from linklab.report.statement import RunGroup, Statement

TEXT = """\
name: x
title: t
source: s
runs: 9
statements:
  - {metric: download, source: a, within: WITHIN, standard_errors: 2, values: {ts: {alg3: 20 s}}}
  - {metric: link-rate, link: wifi, source: a, within: 1 %, values: {ts: {alg3: 10 Mbit/s, naive: 1 Mbit/s}}}
  - {metric: link-rate, link: lte, source: a, within: 1 %, values: {ts: {alg3: 40 Mbit/s}}}
  - {metric: link-deviation, link: wifi, source: a, within: 1 %, values: {ts: {alg3: 3 Mbit/s}}}
  - {metric: link-deviation, link: lte, source: a, within: 1 %, values: {ts: {alg3: 4 Mbit/s}}}
"""

ERROR = math.sqrt(2) * math.sqrt(math.pi / 2) * 0.1 / 3
"""σ is 5 of 50 Mbit/s, and there are 9 runs."""


def limits(text: str) -> Statement:
    return publication.parse(text, "x.yaml").statements[0]


def test_a_tolerance_is_at_most_so_many_standard_errors() -> None:
    wide, narrow = limits(TEXT.replace("WITHIN", "90 %")), limits(TEXT.replace("WITHIN", "1 %"))
    reach = 2 * ERROR * 20
    assert (wide.expected.low, wide.expected.high) == pytest.approx((20 - reach, 20 + reach))
    assert (narrow.expected.low, narrow.expected.high) == pytest.approx((19.8, 20.2))
    assert wide.expected.published == (20, 20)


def test_a_ratio_of_rates_is_no_rate() -> None:
    ratio = (
        "  - {metric: link-rate, link: lte, source: a, each: [ts], of: alg3, to: [naive],"
        " ratio: 50 %, within: 1 %}\n"
    )
    text = TEXT.replace("WITHIN", "90 %")
    assert limits(text + ratio).expected == limits(text).expected


def test_half_as_far_for_four_times_the_runs() -> None:
    few, many = (
        limits(TEXT.replace("WITHIN", "90 %").replace("runs: 9", f"runs: {n}")) for n in (9, 36)
    )
    assert few.expected.high - 20 == pytest.approx(2 * (many.expected.high - 20))


def test_the_error_is_that_of_the_difference_of_two_medians() -> None:
    """By simulation: the rates of both links drawn anew for each run."""
    random = np.random.default_rng(1)
    stated = publication.parse(TEXT.replace("WITHIN", "90 %"), "x.yaml").statements

    def one_median(runs: int) -> float:
        rates = random.normal(10, 3, runs) + random.normal(40, 4, runs)
        return float(median(1000 / rates))

    runs = 101
    apart = [one_median(runs) - one_median(runs) for _ in range(2000)]
    computed = spread.standard_error(RunGroup("ts", "alg3"), stated, runs)
    assert np.std(apart) / 20 == pytest.approx(computed, rel=0.05)


def test_statements_without_it_stay() -> None:
    (first, *others) = publication.parse(TEXT.replace("WITHIN", "90 %"), "x.yaml").statements
    free = replace(first, standard_errors=0.0)
    assert spread.limited([free, *others], 9) == (free, *others)
