import io

import pytest
from linklab import scenario as scenarios
from rich.console import Console

from bench.algorithms import Standing, _contestants, loses_at_random, shown, standing, wins

SMALL = scenarios.find("static-80-50")


def made(name: str, **efficiency: float) -> Standing:
    return Standing(name, 10.0, False, efficiency)


def test_a_comparison_says_who_was_best_and_how_far_behind_we_are() -> None:
    rows = [
        {"algorithm": "adaptive", "efficiency": 0.90},
        {"algorithm": "mptcp", "efficiency": 0.99},
        {"algorithm": "naive", "efficiency": 0.5},
        {"algorithm": "aria2-2", "efficiency": None},  # It failed.
    ]
    found = standing(SMALL, {"oracle_s": 6.5, "rows": rows})
    assert (found.scenario, found.oracle_s, found.loses) == ("static-80-50", 6.5, False)
    assert found.best == "mptcp"
    assert found.behind == pytest.approx(0.1)
    assert "aria2-2" not in found.efficiency


def test_who_is_not_there_is_infinitely_behind() -> None:
    assert made("x", mptcp=0.9).behind == float("inf")
    assert made("x", adaptive=0.9, mptcp=0.8).behind < 0


def test_nothing_is_cut_at_80_columns() -> None:
    text = io.StringIO()
    long = dict.fromkeys(("adaptive", "alg3-dynamic-rescue"), 0.9)
    alone = made("random-1-07", **{"alg3-dynamic-rescue": 0.25})
    Console(file=text, width=80).print(shown([made("emptcp-background-3-busy", **long), alone]))
    assert [line.split() for line in text.getvalue().splitlines()] == [
        ["scenario", "ideal", "s", "adaptive", "best", "other", "behind,", "%"],
        ["emptcp-background-3-busy", "10.00", ".900", ".900", "alg3-dynamic-rescue", "0.0"],
        ["random-1-07", "10.00", "-", ".250", "alg3-dynamic-rescue", "-"],
    ]


def test_a_win_is_shared_within_a_percent() -> None:
    counted = wins([made("x", a=0.9, b=0.895, c=0.5), made("y", a=0.9, b=0.95, c=0.1)])
    assert counted == {"b": 2, "a": 1, "c": 0}


@pytest.mark.parametrize(
    ("name", "loses"),
    [("static-80-50", False), ("superagg-loss", True), ("tm", True), ("wifi-outage", False)],
)
def test_random_loss_is_that_of_links_events_and_radios(name: str, loses: bool) -> None:
    assert loses_at_random(scenarios.find(name)) is loses


def test_who_can_do_a_scenario_is_in_it() -> None:
    steady = _contestants(SMALL, None)
    assert {"adaptive", "alg3-rescue", "curl-wifi", "mptcp", "aria2-16"} <= set(steady)
    assert not {"gb-e", "single-wifi"} & set(steady)  # It has no energy model; curl is beside it.
    assert _contestants(SMALL, ["mptcp", "alg1"]) == ["alg1", "mptcp"]
