"""Tests that compared runs pay the phone for the same time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.core.link_kinds import LTE, WIFI, LinkKind
from linklab.energy.account import EnergyFigures, account
from linklab.energy.activity import Activity, Counted
from linklab.energy.library import get
from linklab.runs import run_figures
from linklab.runs.one_window import in_one_window
from linklab.runs.run_figures import RunFigures

S3 = get("galaxy-s3")
TAIL_S = S3.link(LTE).tail_s


def run(end_s: float, *kinds: LinkKind, model: str = "galaxy-s3") -> RunFigures:
    """A run that received 1 MB over each of these links, until it ended."""
    activities = {
        kind.name: Activity(kind, (Counted(0, 0, 0), Counted(end_s, 1_000_000, 0)))
        for kind in kinds
    }
    cost = account(get(model), activities, start_s=0, end_s=end_s, payload_bytes=1_000_000)
    plain = run_figures.peer_figures(scenario.find("static-80-50"), 1, end_s, {"wifi": 1})
    return replace(plain, energy=cost.figures)


def energies(*runs: tuple[int, RunFigures]) -> list[EnergyFigures]:
    return [one.energy for one in in_one_window(runs) if one.energy is not None]


def test_a_run_without_a_tail_pays_the_phone_until_the_last_radio_sleeps() -> None:
    short, long = run(2.0, WIFI), run(3.0, LTE)
    assert short.energy is not None
    wifi, lte = energies((1, short), (1, long))
    assert lte == long.energy
    assert (wifi.window_s, wifi.phone_j) == pytest.approx((3 + TAIL_S, (3 + TAIL_S) * 0.226))
    assert wifi.joules - short.energy.joules == pytest.approx((1 + TAIL_S) * 0.226)
    assert wifi.main_j == short.energy.main_j, "the download is as it was"


@given(st.lists(st.tuples(st.integers(1, 3), st.floats(1, 100)), max_size=8))
def test_each_seed_has_the_time_of_its_longest_run(ends: list[tuple[int, float]]) -> None:
    found = energies(*((seed, run(end_s, WIFI)) for seed, end_s in ends))
    longest = [max(end_s for seed, end_s in ends if seed == own) for own, _ in ends]
    assert [one.window_s for one in found] == pytest.approx(longest)


def test_models_without_the_phone_and_runs_without_energy_stay_as_they_are() -> None:
    s7 = run(2.0, WIFI, model="galaxy-s7"), run(3.0, LTE, model="galaxy-s7")
    assert in_one_window([(1, one) for one in s7]) == list(s7)
    none = replace(s7[0], energy=None)
    assert in_one_window([(1, none), (1, s7[1])]) == [none, s7[1]]
