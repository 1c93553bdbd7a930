"""Tests the limits of a verdict, and what is counted of verdicts, by hand."""

from dataclasses import replace

import pytest

from linklab.core.statistics import Interval
from linklab.report import publication, reproduction
from linklab.report.reproduction import CheckedStatement, Verdict
from linklab.report.reproduction_test import run
from linklab.report.statement import Statement
from linklab.runs.loaded_runs import LoadedRun


def stated(*statements: str, lacks: str = "") -> publication.Publication:
    lines = "".join(f"  - {{source: s, {one}}}\n" for one in statements)
    text = f"name: x\ntitle: A paper\nsource: thesis\n{lacks}statements:\n{lines}"
    return publication.parse(text, "x.yaml")


def checked(statement: str, *runs: LoadedRun) -> CheckedStatement:
    (found,) = reproduction.check(stated(statement), reproduction.by_cell(runs))
    return found


TEN = "metric: download, within: 1 s, values: {ts: {alg3: 10 s}}"


@pytest.mark.parametrize(
    ("download_s", "verdict", "error"),
    [(8.99, "fails", -1.01), (9.0, "holds", -1.0), (11.0, "holds", 1.0), (11.01, "fails", 1.01)],
)
def test_a_value_at_its_limit_holds(download_s: float, verdict: Verdict, error: float) -> None:
    found = checked(TEN, run("alg3", 1, download_s))
    assert (found.verdict, found.measured, found.runs) == (verdict, download_s, 1)
    assert found.error == pytest.approx(error)
    assert found.error_ratio == pytest.approx(error / 10)


def ten() -> Statement:
    return stated(TEN).statements[0]


@pytest.mark.parametrize(
    ("verdict", "low", "high", "is_clear"),
    [
        ("holds", 9.0, 11.0, True),
        ("holds", 8.9, 10.0, False),
        ("holds", 10.0, 11.1, False),
        ("fails", 11.1, 12.0, True),
        ("fails", 11.0, 12.0, False),
        ("fails", 8.0, 8.9, True),
        ("fails", 8.0, 9.0, False),
    ],
)
def test_a_verdict_is_clear_if_no_value_of_the_interval_changes_it(
    verdict: Verdict, low: float, high: float, is_clear: bool
) -> None:
    one = CheckedStatement(ten(), verdict, 10.0, Interval(low, high), 5)
    assert one.clear is is_clear
    assert not replace(one, interval=None).clear


def test_counts_of_verdicts() -> None:
    held = CheckedStatement(ten(), "holds", 10.0, Interval(9.5, 10.5), 5)
    missed = CheckedStatement(ten(), "fails", 13.0, Interval(12.0, 14.0), 5)
    explained = replace(missed, statement=replace(ten(), why="a reason"), interval=None)
    unknown = [CheckedStatement(ten(), one) for one in ("no runs", "not there yet")]
    count = reproduction.count([held, held, missed, missed, explained, *unknown])
    assert (count.holds, count.fails, count.all) == (2, 3, 5)
    assert (count.clear, count.explained) == (4, 1)
    assert reproduction.median_error(unknown, relative=False) is None
    assert reproduction.rms_error([held, missed], relative=False) == pytest.approx(4.5**0.5)


def test_what_is_missing_most_comes_first() -> None:
    less = "metric: download, is: less, each: [ts], to: [alg3], of: "
    lacks = "not_there: {mdp: GreenBag, emptcp-x: a phone}\n"
    three = stated(*(less + one for one in ("emptcp-x", "mdp", "mdp")), lacks=lacks)
    found = reproduction.check(three, {})
    assert list(reproduction.missing(found).items()) == [("GreenBag", 2), ("a phone", 1)]


def test_cells_with_different_seeds_count_by_the_one_with_fewest() -> None:
    naive = [run("naive", seed, 20.0 + seed) for seed in (1, 2, 3)]
    alg3 = [run("alg3", seed, 11.0) for seed in (3, 4)]
    ratio = "metric: download, each: [ts], of: alg3, to: [naive], ratio: 50 %, within: 1 %"
    found = checked(ratio, *naive, *alg3)
    assert (found.verdict, found.measured, found.runs) == ("holds", 0.5, 2)
    assert checked(ratio, *naive).verdict == "no runs"


def test_an_undefined_value_is_no_verdict() -> None:
    same = [run(who, 1, 10.0) for who in ("alg3", "naive", "single-lte")]
    line = "metric: download, with: goodput, correlation: -1, within: 0.2, cells: {ts: [alg3, naive, single-lte]}"
    found = checked(line, *same)
    assert (found.verdict, found.measured, found.runs) == ("no runs", None, 1)
