import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.models.events import Event
from linklab.runs.comparison import PublishedFigures, Spread, compare, spread
from linklab.runs.figures import DOWNLOAD
from linklab.runs.run_figures import LinkFigures, RunFigures
from linklab.scenario import Scenario


@pytest.fixture(scope="module")
def hs() -> Scenario:
    return scenario.find("hs-s7")


def run(download_s: float, shares: Sequence[float] = (0.6, 0.4)) -> RunFigures:
    names = ("wifi", "lte", "usb")
    return RunFigures(
        download_s=download_s,
        goodput_bps=2e9 / download_s,
        oracle_s=15.0,
        efficiency=15.0 / download_s,
        link_delta_s=0.5,
        links={
            name: LinkFigures(round(250e6 * share), share)
            for name, share in zip(names, shares, strict=False)
        },
    )


def test_spread() -> None:
    assert spread([1, 2, 3]) == Spread(2.0, 1.0, 3.0, 1.0, 3)
    assert spread([4]) == Spread(4.0, 4.0, 4.0, 0.0, 1)
    with pytest.raises(ValueError, match="no values"):
        spread([])


@given(st.lists(st.floats(1e-3, 1e6), min_size=1))
def test_a_median_lies_within_the_extremes(values: list[float]) -> None:
    of = spread(values)
    assert of.min <= of.median <= of.max
    assert of.sd >= 0
    assert of.count == len(values)


def test_a_run_whose_oracle_is_not_known_is_compared(small: Scenario) -> None:
    unknown = replace(run(16.0), oracle_s=None, efficiency=None)
    compared = compare(small, {"alg3": [unknown, run(17.0)]})
    assert compared.oracle_s == 15.0
    assert compared.rows[0].runs == 2
    gone = tuple(Event(link, at_s=0.0, carrier="down") for link in small.links)
    never = replace(small, events=gone)
    assert compare(never, {"alg3": [unknown]}).oracle_s == math.inf


def test_compare(hs: Scenario) -> None:
    runs = {"alg3": [run(16.0), run(17.0)], "aria2-2": [run(18.0)]}
    stated = {
        "alg3": PublishedFigures(16.55, 0.5),
        "naive": PublishedFigures(18.99),
        "alg1": PublishedFigures(1.0),
    }
    compared = compare(hs, runs, {"naive": ["H2O ended"], "aria2-2": ["hung"]}, stated)
    assert [row.algorithm for row in compared.rows] == ["alg3", "aria2-2", "naive"]
    assert compared.links == ("wifi", "lte")
    assert compared.has_published
    alg3, aria2, naive = compared.rows
    assert alg3.runs == 2
    download = alg3.of(DOWNLOAD)
    assert download is not None
    assert download.median == 16.5
    assert alg3.published_s == 16.55
    assert alg3.published_link_delta_s == 0.5
    assert alg3.error_ratio == pytest.approx((16.5 - 16.55) / 16.55)
    assert alg3.links["wifi"].share.median == 0.6
    assert (aria2.published_s, aria2.error_ratio, aria2.failures) == (None, None, ("hung",))
    assert (naive.runs, naive.of(DOWNLOAD), naive.error_ratio) == (0, None, None)
    assert naive.published_s == 18.99


def test_links_of_a_run_outside_the_lab_come_last(hs: Scenario) -> None:
    assert compare(hs, {"x": [run(20.0, (0.5, 0.0, 0.5))]}).links == ("wifi", "lte", "usb")
