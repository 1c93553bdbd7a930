import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.regression import figures
from linklab.regression.figures import FIGURES, Bound, parse_bound
from linklab.runs.run_figures import LinkFigures, RunFigures

BY_BOUND = {one.bound: one for one in FIGURES}


def test_a_run_s_figures_are_kept_to_a_tenth_of_a_millisecond() -> None:
    links = {
        "wifi": LinkFigures(6, 0.6, wasted_bytes=1),
        "lte": LinkFigures(4, 0.4, wasted_bytes=2),
    }
    run = RunFigures(10.123456, 8e6, 9.0, 0.889005, None, links, 0.30001)
    assert figures.values(run) == {
        "download_s": 10.1235,
        "efficiency": 0.889,
        "link_delta_s": None,
        "wasted_bytes": 3,
        "stalled_s": 0.3,
    }


def test_a_workload_s_figures_are_kept_too() -> None:
    own = {"startup_s": 1.23456, "interruptions": 2.0, "interrupted_s": 0.0, "playback_s": 44.0}
    run = RunFigures(10.0, 8e6, 9.0, 0.9, None, {}, 0.0, workload=own)
    kept = figures.values(run)
    assert {key: kept[key] for key in own} == {**own, "startup_s": 1.2346}
    assert len(kept) == 9
    assert parse_bound(BY_BOUND["workload"], "5 % or 100 ms") == Bound(0.05, 0.1)
    assert parse_bound(BY_BOUND["counts"], "1") == Bound(0.0, 1.0)
    assert len({one.key for one in FIGURES}) == len(FIGURES)


@pytest.mark.parametrize(
    ("key", "text", "bound"),
    [
        ("download", "1 %", Bound(0.01, 0.0)),
        ("download", "20 ms", Bound(0.0, 0.02)),
        ("download", "1 % or 20 ms", Bound(0.01, 0.02)),
        ("download", "20 ms or 1%", Bound(0.01, 0.02)),
        ("efficiency", "0.02", Bound(0.0, 0.02)),
        ("wasted", "5 % or 300 kB", Bound(0.05, 300e3)),
        ("stalls", "0 s", Bound(0.0, 0.0)),
    ],
)
def test_bounds(key: str, text: str, bound: Bound) -> None:
    assert parse_bound(BY_BOUND[key], text) == bound


@pytest.mark.parametrize("text", ["", "1", "1 % or 2 %", "1 % or 20 ms or 3 s", "1 MB", "-1 %"])
def test_what_is_no_bound_is_refused_and_what_is_allowed_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no bound of the download time; allowed: .*'1 %'"):
        parse_bound(BY_BOUND["download"], text)


@given(st.floats(0, 1), st.floats(0, 10), st.floats(0, 1000))
def test_the_larger_of_both_is_allowed(relative: float, absolute: float, value: float) -> None:
    allowed = Bound(relative, absolute).allowed(value)
    assert allowed >= absolute
    assert allowed >= relative * value
    assert allowed in (absolute, relative * value)
