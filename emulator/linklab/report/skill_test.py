"""Tests that rules which measure nothing get what they hit, and chance gets nothing."""

import numpy as np
import pytest

from linklab.report import publication, skill
from linklab.report.skill import Skill
from linklab.report.statement import Statement

PAIR = "each: [ts], of: alg3, to: [naive]"


def stated(*statements: str) -> tuple[Statement, ...]:
    lines = "".join(f"  - {{source: s, {one}}}\n" for one in statements)
    return publication.parse(
        f"name: x\ntitle: t\nsource: s\nstatements:\n{lines}", "x.yaml"
    ).statements


def judged(
    statements: tuple[Statement, ...], lab: list[bool], arithmetic: list[bool], seed: int = 1
) -> Skill:
    hits = np.array(lab)
    redrawn = np.broadcast_to(hits, (500, len(hits)))
    return skill.judge(statements, hits, redrawn, np.array(arithmetic), seed)


def test_a_sign_is_worse_or_better_whatever_is_measured() -> None:
    """A lower goodput and a longer time are both worse, so that one constant hits both."""
    signs = stated(
        f"metric: goodput, {PAIR}, is: less",
        f"metric: download, {PAIR}, is: more",
        f"metric: energy, {PAIR}, is: less",
        f"metric: energy, {PAIR}, is: same, within: 10 %",
    )
    made = judged(signs, [True, False, True, False], [False] * 4)
    (best,) = made.constants
    assert (best.form, best.answer, best.hits, best.of) == ("signs", "always worse", 2, 4)
    assert (made.of, made.lab, made.constant, made.arithmetic, made.skill) == (4, 2, 2, 0, 0)
    assert (made.only_lab, made.only_rule) == (1, 1)


@pytest.mark.parametrize(
    ("said", "form", "answer", "hits"),
    [
        (
            ("ratio: 80 % to 100 %", "ratio: 95 % to 120 %", "ratio: 130 % to 140 %"),
            "ratios",
            "always 97.5 %",
            2,
        ),
        (
            ("difference: 1 s to 3 s", "difference: 2 s to 9 s", "difference: below 2500 ms"),
            "difference of download",
            "always 2.25 s",
            3,
        ),
    ],
)
def test_the_best_number_lies_within_the_most_limits(
    said: tuple[str, ...], form: str, answer: str, hits: int
) -> None:
    (best,) = judged(
        stated(*(f"metric: download, {PAIR}, {one}" for one in said)), [True] * 3, [False] * 3
    ).constants
    assert (best.form, best.answer, best.hits) == (form, answer, hits)


def test_values_of_each_measure_have_a_constant_of_their_own() -> None:
    values = stated(
        "metric: link-share, link: wifi, within: 1 %, values: {ts: {alg3: 100 %, naive: 100 %}}",
        "metric: download, within: 1 s, values: {ts: {alg3: 10 s, naive: 20 s}}",
    )
    made = judged(values, [True] * 4, [True] * 4)
    assert [(one.answer, one.hits) for one in made.constants] == [
        ("always 100.0 %", 2),
        ("always 10.00 s", 1),
    ]
    assert (made.better, made.skill) == (4, 0), "arithmetic is the better rule"


def test_random_verdicts_have_no_skill() -> None:
    """Verdicts that hold as often as the best constant, but at random: in 19 of 20 trials or more the
    interval contains 0. The words of the statements are random, too."""
    chance = np.random.default_rng(7)
    within = []
    for _ in range(60):
        words = chance.choice(["less", "more"], size=80, p=[0.6, 0.4])
        signs = stated(*(f"metric: download, {PAIR}, is: {one}" for one in words))
        rule = max((words == "less").sum(), (words == "more").sum()) / 80
        lab, arithmetic = chance.random(80) < rule, chance.random(80) < 0.5
        within.append(judged(signs, lab.tolist(), arithmetic.tolist()).interval.holds(0))
    assert sum(within) >= 55


def test_a_lab_that_is_always_right_has_skill() -> None:
    words = ["less", "more"] * 20
    signs = stated(*(f"metric: download, {PAIR}, is: {one}" for one in words))
    made = judged(signs, [True] * 40, [True, False] * 20)
    assert (made.skill, made.better) == (20, 20)
    assert made.interval.low > 0


def test_the_interval_knows_seeds_that_say_otherwise() -> None:
    signs = stated(*(f"metric: download, {PAIR}, is: {one}" for one in ["less", "more"] * 20))
    lab = np.array([True, False] * 20)
    steady = np.broadcast_to(lab, (500, 40))
    unsteady = np.where(skill.draws(1)[:500] < 0.5, True, lab)
    widths = [
        made.high - made.low
        for redrawn in (steady, unsteady)
        for made in [skill.judge(signs, lab, redrawn, lab).interval]
    ]
    assert widths[1] > widths[0]
