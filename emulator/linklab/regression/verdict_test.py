import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.regression import verdict
from linklab.regression.figures import FIGURES, Bound, Cell, Values
from linklab.regression.suite import DEFAULT_BOUNDS
from linklab.regression.verdict import CheckedCell, Status, SuiteReport

THEN: Values = {
    "download_s": 10.0,
    "efficiency": 0.9,
    "link_delta_s": 0.0,
    "wasted_bytes": 0.0,
    "stalled_s": 0.0,
}
EXACT = {one.bound: Bound() for one in FIGURES}
finite = st.floats(0, 1e6)
values = st.fixed_dictionaries({one.key: st.none() | finite for one in FIGURES})


def words(now: Values, then: Values = THEN) -> list[str]:
    return [str(one) for one in verdict.deviations(then, now, DEFAULT_BOUNDS)]


@pytest.mark.parametrize(
    ("figure", "value", "status", "said"),
    [
        ("download_s", 10.09, Status.SAME, ""),
        ("download_s", 10.2, Status.WORSE, "10.000 s -> 10.200 s (+2.0 %, allowed ±0.100 s)"),
        ("download_s", 9.0, Status.BETTER, "10.000 s -> 9.000 s (-10.0 %, allowed ±0.100 s)"),
        ("efficiency", 0.85, Status.WORSE, "0.900 -> 0.850 (-5.6 %, allowed ±0.020)"),
        ("efficiency", 0.95, Status.BETTER, "0.900 -> 0.950 (+5.6 %, allowed ±0.020)"),
        ("link_delta_s", 0.19, Status.SAME, ""),
        ("link_delta_s", 0.5, Status.WORSE, "link Δ 0.000 s -> 0.500 s (allowed ±0.200 s)"),
        ("link_delta_s", None, Status.WORSE, "link Δ 0.000 s -> none"),
        ("wasted_bytes", 1e6, Status.WORSE, "bytes wasted 0.00 MB -> 1.00 MB (allowed ±0.30 MB)"),
        ("stalled_s", 0.5, Status.SAME, ""),
        ("stalled_s", 3.0, Status.WORSE, "stalls 0.000 s -> 3.000 s (allowed ±0.600 s)"),
    ],
)
def test_a_change(figure: str, value: float | None, status: Status, said: str) -> None:
    now = {**THEN, figure: value}
    assert len(words(now)) == bool(said)
    assert all(one.endswith(said) for one in words(now))
    assert verdict.status(verdict.deviations(THEN, now, DEFAULT_BOUNDS)) is status


def test_what_is_worse_counts_more_than_what_is_better() -> None:
    now = {**THEN, "download_s": 9.0, "stalled_s": 3.0}
    assert [one.split()[0] for one in words(now)] == ["download", "stalls"]
    assert verdict.status(verdict.deviations(THEN, now, DEFAULT_BOUNDS)) is Status.WORSE


def moved(now: Values | None, bounds: dict[str, Bound] = DEFAULT_BOUNDS) -> dict[str, float | None]:
    return {one.figure: one.bounds for one in verdict.movements(THEN, now, bounds)}


def test_movements_are_by_their_bounds_and_more_is_worse() -> None:
    now = {**THEN, "download_s": 10.05, "efficiency": 0.94, "stalls": 0.0, "wasted_bytes": 600e3}
    assert moved(now) == {
        "download time": pytest.approx(0.5),
        "efficiency": pytest.approx(-2.0),
        "link Δ": 0.0,
        "bytes wasted": pytest.approx(2.0),
        "stalls": 0.0,
    }


def test_what_a_program_tells_all_of_a_sudden_and_a_failure_are_worse_than_any_bound() -> None:
    assert moved({**THEN, "link_delta_s": None})["link Δ"] is None
    assert moved(None) == {"the download fails": None}


@given(values, values)
def test_movements_beyond_a_bound_are_the_deviations(one: Values, other: Values) -> None:
    worse = {
        each.figure.title for each in verdict.deviations(one, other, DEFAULT_BOUNDS) if each.worse
    }
    assert worse == {
        each.figure
        for each in verdict.movements(one, other, DEFAULT_BOUNDS)
        if each.bounds is None or each.bounds > 1
    }


@given(values)
def test_the_same_figures_never_deviate(now: Values) -> None:
    assert not verdict.deviations(now, now, EXACT)


@given(values, values)
def test_what_is_worse_one_way_is_better_the_other(one: Values, other: Values) -> None:
    there = verdict.deviations(one, other, EXACT)
    back = verdict.deviations(other, one, EXACT)
    assert [each.figure for each in there] == [each.figure for each in back]
    for forth, home in zip(there, back, strict=True):
        untold = None in (forth.baseline, forth.now)
        assert (forth.worse and home.worse) if untold else (forth.worse != home.worse)


@given(values, values, st.floats(0, 1), st.floats(0, 1))
def test_wider_bounds_never_find_more(one: Values, other: Values, a: float, b: float) -> None:
    narrow = {each.bound: Bound(min(a, b), min(a, b)) for each in FIGURES}
    wide = {each.bound: Bound(max(a, b), max(a, b)) for each in FIGURES}
    found = {each.figure for each in verdict.deviations(one, other, narrow)}
    assert {each.figure for each in verdict.deviations(one, other, wide)} <= found


def report(*found: Status, problems: tuple[str, ...] = ()) -> SuiteReport:
    checked = tuple(CheckedCell(Cell("ls", "alg3", n), one) for n, one in enumerate(found))
    return SuiteReport("s", "b", checked, 1, 10.0, 95.0, problems=problems)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (report(Status.SAME, Status.BETTER), 0),
        (report(Status.SAME, Status.WORSE), 1),
        (report(Status.SAME, Status.ERROR), 2),
        (report(Status.WORSE, Status.ERROR), 1),
        (report(Status.SAME, problems=("x has no baseline",)), 2),
    ],
)
def test_exit_codes(made: SuiteReport, code: int) -> None:
    assert made.exit_code == code


def test_a_report_in_one_line() -> None:
    assert report(Status.SAME, Status.BETTER, Status.SAME).in_one_line == (
        "s: 3 downloads, 2 same, 1 better, 0 worse; 1 run twice; 10 s, 9.5 virtual s per real s"
    )
