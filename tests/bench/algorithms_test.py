import pytest
from linklab import scenario as scenarios

from bench.algorithms import (
    Standing,
    _clients,
    contenders,
    loses_at_random,
    matrices,
    standing,
    wins,
)

SMALL = scenarios.find("static-80-50")


def made(name: str, **efficiency: float) -> Standing:
    return Standing(name, 10.0, False, efficiency)


def test_a_comparison_says_who_was_best_and_how_far_behind_we_are() -> None:
    rows = [
        row("adaptive", 0.90, 2e-6),
        row("mptcp", 0.99),
        row("naive", 0.5),
        row("aria2-2", None),  # It failed.
    ]
    found = standing(SMALL, {"oracle_s": 6.5, "rows": rows})
    assert (found.scenario, found.oracle_s, found.loses) == ("static-80-50", 6.5, False)
    assert found.best == "mptcp"
    assert found.behind == pytest.approx(0.1)
    assert "aria2-2" not in found.efficiency
    assert found.joules_per_byte == {"adaptive": 2e-6}
    assert not found.is_film


def row(
    name: str, efficiency: float | None, joules_per_byte: float | None = None
) -> dict[str, object]:
    energy = None if joules_per_byte is None else {"joules_per_byte": joules_per_byte}
    took_s = None if efficiency is None else 6.5 / efficiency
    return {"algorithm": name, "efficiency": efficiency, "download_s": took_s, "energy": energy}


def saving(name: str, **joules_per_byte: float) -> Standing:
    called = {key.replace("_", "-"): value for key, value in joules_per_byte.items()}
    return Standing(name, 10.0, False, dict.fromkeys(called, 0.5), "+" in name, called, {})


def test_a_rival_saves_energy_in_its_own_scenarios() -> None:
    assert saving("emptcp-x", emptcp_http=2, emptcp_kernel=1, gb_e=0.5).rival == "emptcp-kernel"
    assert saving("greenbag-x+film", emptcp_http=1, gb_e=2).rival == "gb-e"
    assert saving("static-80-50", emptcp_http=1, gb_e=2).rival is None
    assert saving("greenbag-x", emptcp_http=1).rival is None


def test_who_saves_energy_gets_more_seeds_where_energy_is_measured() -> None:
    everybody = ["adaptive", "adaptive-energy", "gb-e", "naive"]
    film = saving("greenbag-x+film", adaptive=1, adaptive_energy=1, gb_e=1, naive=1)
    assert contenders(film, everybody) == everybody[:3]
    no_energy = made("x", **{"adaptive": 0.9, "mptcp": 0.9, "adaptive-energy": 0.2, "gb-e": 0.2})
    assert contenders(no_energy, ["mptcp", *everybody[:3]]) == ["mptcp", "adaptive"]


def test_who_is_not_there_is_infinitely_behind() -> None:
    assert made("x", mptcp=0.9).behind == float("inf")
    assert made("x", adaptive=0.9, mptcp=0.8).behind < 0


def test_who_may_be_ahead_gets_more_seeds() -> None:
    first = made("x", adaptive=0.72, a=0.8, b=0.66, c=0.65)
    everybody = ["c", "adaptive", "failed", "a", "b"]
    assert contenders(first, everybody) == ["adaptive", "failed", "a", "b"]


def test_of_who_cannot_be_ahead_only_the_fastest_does() -> None:
    far = made("x", adaptive=0.9, a=0.5, b=0.4)
    assert contenders(far, ["adaptive", "a", "b"]) == ["adaptive", "a"]
    ideal = made("x", adaptive=0.9901, a=0.98, b=0.97)
    assert contenders(ideal, ["adaptive", "a", "b"]) == ["adaptive", "a"]


def test_who_is_far_behind_has_one_seed() -> None:
    near, far = matrices("x", ["a", "b", "c"], {"a", "c"}, 5)
    assert (near["algorithms"], near["runs"]) == (["a", "c"], 5)
    assert (far["algorithms"], far["runs"]) == (["b"], 1)
    assert matrices("x", ["a"], {"a"}, 5) == [near | {"algorithms": ["a"]}]


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
    steady = _clients(SMALL, None)
    assert {"adaptive", "curl-wifi", "mptcp", "aria2-16"} <= set(steady)
    assert not {"gb-e", "single-wifi"} & set(steady)  # It has no energy model; curl is beside it.
    assert _clients(SMALL, ["mptcp", "alg1"]) == ["alg1", "mptcp"]
