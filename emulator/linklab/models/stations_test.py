import math
import statistics
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.models.stations import ALONE, Stations, StationSettings

SETTINGS = st.builds(StationSettings, st.integers(0, 8), st.floats(0.01, 10), st.floats(0.01, 10))


def changes(stations: Stations, until_s: float) -> list[tuple[float, int]]:
    """Every time at which somebody begins or ends, with how many are busy from then on."""
    found = [(0.0, stations.busy(0.0))]
    while stations.next_s() <= until_s:
        t_s = stations.next_s()
        found.append((t_s, stations.busy(t_s)))
    return found


def test_nobody() -> None:
    stations = Stations(ALONE, Random(1))
    assert stations.busy(1e6) == 0
    assert stations.next_s() == math.inf


@given(SETTINGS, st.integers())
def test_one_at_a_time_changes_at_the_time_announced(settings: StationSettings, seed: int) -> None:
    history = changes(Stations(settings, Random(seed)), 20)
    for (before_s, before), (t_s, now) in pairwise(history):
        assert t_s > before_s
        assert abs(now - before) == 1
        assert 0 <= now <= settings.count
    assert changes(Stations(settings, Random(seed)), 20) == history


@given(SETTINGS, st.integers(), st.lists(st.floats(0, 50), max_size=30))
def test_asking_more_often_changes_nothing(
    settings: StationSettings, seed: int, asked: list[float]
) -> None:
    history = changes(Stations(settings, Random(seed)), 50)
    stations = Stations(settings, Random(seed))
    for t_s in sorted(asked):
        expected = [busy for changed_s, busy in history if changed_s <= t_s][-1]
        assert stations.busy(t_s) == stations.busy(t_s) == expected
        assert stations.next_s() > t_s


def test_another_station_leaves_the_others_as_they_were() -> None:
    two = changes(Stations(StationSettings(2), Random(5)), 500)
    three = changes(Stations(StationSettings(3), Random(5)), 500)
    assert {t_s for t_s, _ in two} < {t_s for t_s, _ in three}


@pytest.mark.parametrize("begins_per_s", [0.025, 0.05])
def test_times_and_shares_are_as_stated(begins_per_s: float) -> None:
    """eMPTCP's stations: busy 20 s on average, a third or half of the time. 4 sigma."""
    history = changes(Stations(StationSettings(1, begins_per_s), Random(3)), 200_000)
    spans = [(end - begin, busy) for (begin, busy), (end, _) in pairwise(history)]
    for wanted_s, state in ((20.0, 1), (1 / begins_per_s, 0)):
        lasted = [length for length, busy in spans if busy == state]
        error_s = 4 * wanted_s / math.sqrt(len(lasted))
        assert statistics.mean(lasted) == pytest.approx(wanted_s, abs=error_s)
    share = sum(length for length, busy in spans if busy) / sum(length for length, _ in spans)
    assert share == pytest.approx(begins_per_s / (begins_per_s + 0.05), rel=0.05)


def test_at_the_start_as_busy_as_ever() -> None:
    busy = sum(Stations(StationSettings(1), Random(seed)).busy(0.0) for seed in range(3000))
    assert busy / 3000 == pytest.approx(1 / 3, abs=4 * math.sqrt(2 / 9 / 3000))
