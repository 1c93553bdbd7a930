import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models.carriers import Carriers, CarrierSettings
from linklab.models.layer import STEP_S, Load

PLATEAU_BPS = 60_000_000
BASE = LinkState(True, PLATEAU_BPS, 10_000_000, 0.025, 0.0, 0.0)
FULL_QUEUE_BYTES = 3_000_000


@dataclass(frozen=True)
class Asked:
    """One question to the layer: when, and what it answered."""

    t_s: float
    state: LinkState


def drive(
    layer: Carriers,
    until_s: float,
    offered_bps: Callable[[float], float],
    connections: Callable[[float], frozenset[int]] = lambda _: frozenset(),
) -> list[Asked]:
    """Asks the layer as a player does, over a link with a queue that traffic is offered to."""
    t_s, sent, backlog = 0.0, 0.0, 0.0
    history: list[Asked] = []
    while t_s <= until_s:
        load = Load(
            down_bytes=round(sent), down_backlog_bytes=round(backlog), connections=connections(t_s)
        )
        state = layer.apply(t_s, load, BASE)
        assert layer.apply(t_s, load, BASE) == state
        next_s = layer.next_s()
        assert next_s > t_s
        history.append(Asked(t_s, state))
        next_s = min(next_s, t_s + 0.5)
        backlog += offered_bps(t_s) / 8 * (next_s - t_s)
        served = min(backlog, state.down_rate_bps / 8 * (next_s - t_s))
        backlog = min(backlog - served, FULL_QUEUE_BYTES)
        sent += served
        t_s = next_s
    return history


def saturating(_: float) -> float:
    return 2.0 * PLATEAU_BPS


def came_up(history: list[Asked]) -> list[tuple[float, int]]:
    """Every change of the number of carriers."""
    found = [(0.0, 1)]
    found += [(one.t_s, one.state.carriers) for one in history]
    return [one for last, one in pairwise(found) if one[1] != last[1]]


def made(settings: CarrierSettings, seed: int = 1) -> Carriers:
    return Carriers(settings, Random(seed))


ONE = CarrierSettings(1)
THREE = CarrierSettings(3)
NEVER = CarrierSettings(3, never_probability=1.0)
STEADY = CarrierSettings(3, delay_sigma=0.0, slow_probability=0.0)
"""A ramp whose length is known: 2.5 s."""


Key: TypeAlias = Literal["device", "connection"]
KEYS: st.SearchStrategy[Key] = st.sampled_from(("device", "connection"))

SETTINGS = st.builds(
    CarrierSettings,
    count=st.integers(1, 5),
    first_share=st.floats(0.05, 1),
    delay_median_s=st.floats(0.01, 5),
    delay_sigma=st.floats(0, 1),
    slow_probability=st.floats(0, 1),
    never_probability=st.floats(0, 1),
    trigger_bytes=st.integers(1, 100_000),
    trigger_s=st.floats(0, 0.5),
    idle_s=st.floats(0.02, 2),
    key=KEYS,
)


def test_a_saturating_flow_shows_the_configured_ramp_within_one_step() -> None:
    history = drive(made(STEADY), 5, saturating)
    backlog_s = STEP_S  # The first step fills the queue, the next one sees it.
    second, third = came_up(history)
    assert (second[1], third[1]) == (2, 3)
    assert second[0] == pytest.approx(backlog_s + 0.05 + 1.25, abs=STEP_S)
    assert third[0] == pytest.approx(backlog_s + 0.05 + 2.5, abs=STEP_S)
    shares = {one.state.carriers: one.state.down_rate_bps / PLATEAU_BPS for one in history}
    assert shares == pytest.approx({1: 0.4, 2: 0.7, 3: 1.0})
    assert {one.state.up_rate_bps for one in history} == {BASE.up_rate_bps}


@pytest.mark.parametrize(("backlog_bytes", "carriers"), [(8999, 1), (9000, 3)])
def test_the_trigger_is_a_backlog_of_9000_bytes(backlog_bytes: int, carriers: int) -> None:
    layer = made(STEADY)
    for step in range(200):
        state = layer.apply(step * STEP_S, Load(down_backlog_bytes=backlog_bytes), BASE)
    assert state.carriers == carriers


def test_with_all_carriers_it_looks_eight_times_in_the_idle_time() -> None:
    layer = made(STEADY)
    for step in range(200):
        layer.apply(step * STEP_S, Load(down_backlog_bytes=9000), BASE)
    assert layer.next_s() == pytest.approx(199 * STEP_S + 1.28 / 8)


@given(st.floats(0, 0.39), st.integers(), KEYS)
def test_a_paced_flow_below_one_carrier_never_triggers(share: float, seed: int, key: Key) -> None:
    history = drive(
        made(replace(THREE, key=key), seed),
        3,
        lambda _: share * PLATEAU_BPS,
        lambda _: frozenset((7,)),
    )
    assert {one.state.carriers for one in history} == {1}


def test_a_short_burst_does_not_trigger() -> None:
    """Up to half a megabyte, queued for a quarter of a second every second."""
    layer = made(replace(THREE, trigger_s=0.3))
    history = drive(layer, 20, lambda t_s: PLATEAU_BPS if t_s % 1 < 0.1 else 0.0)
    assert came_up(history) == []


def test_idleness_resets() -> None:
    pause = (6.0, 9.0)
    history = drive(
        made(STEADY), 13, lambda t_s: 0.0 if pause[0] <= t_s < pause[1] else 2.0 * PLATEAU_BPS
    )
    changes = came_up(history)
    assert [carriers for _, carriers in changes] == [2, 3, 1, 2, 3]
    empty_s = pause[0] + FULL_QUEUE_BYTES * 8 / PLATEAU_BPS
    assert changes[2][0] == pytest.approx(empty_s + 1.28, abs=1.28 / 8 + STEP_S)
    assert changes[4][0] == pytest.approx(pause[1] + 2.55, abs=2 * STEP_S)


def test_a_pause_shorter_than_idle_keeps_the_carriers() -> None:
    history = drive(made(STEADY), 12, lambda t_s: 0.0 if 6 <= t_s < 7 else 2.0 * PLATEAU_BPS)
    assert [carriers for _, carriers in came_up(history)] == [2, 3]


def test_the_ramp_waits_while_there_is_no_load() -> None:
    """Half a second without backlog in the middle of the ramp makes it so much longer."""
    layer = made(STEADY)
    states = []
    sent = 0
    for number in range(200):
        t_s = number * STEP_S
        quiet = 50 <= number < 75
        sent += 1000
        states.append(layer.apply(t_s, Load(sent, down_backlog_bytes=0 if quiet else 10**6), BASE))
    full = [state.carriers for state in states].index(3)
    assert full * STEP_S == pytest.approx(0.05 + 2.5 + 25 * STEP_S, abs=1.01 * STEP_S)


def test_a_new_connection_starts_anew_and_an_old_one_goes_on() -> None:
    """Thesis figure 4.17: the second connection ramps again, the first one had not to."""

    def connections(t_s: float) -> frozenset[int]:
        if t_s < 4:
            return frozenset((53155,))
        return frozenset((53155, 43919)) if t_s < 8 else frozenset((43919, 49935))

    kept = drive(made(replace(STEADY, key="connection")), 7.9, saturating, connections)
    assert [carriers for _, carriers in came_up(kept)] == [2, 3]
    # 43919 has been ramping beside it and takes over; 49935 changes nothing.
    taken_over = drive(made(replace(STEADY, key="connection")), 12, saturating, connections)
    assert came_up(taken_over) == came_up(kept)
    replaced = drive(
        made(replace(STEADY, key="connection")),
        12,
        saturating,
        lambda t_s: frozenset((1 if t_s < 5 else 2,)),
    )
    changes = came_up(replaced)
    assert [carriers for _, carriers in changes] == [2, 3, 1, 2, 3]
    assert changes[2][0] == pytest.approx(5, abs=0.17)
    assert changes[4][0] - changes[2][0] == pytest.approx(2.55, abs=STEP_S)


def test_without_connections_nothing_ramps_by_connection() -> None:
    assert came_up(drive(made(replace(THREE, key="connection")), 10, saturating)) == []


def test_what_it_wants_to_know() -> None:
    assert made(THREE).wants_load
    assert not made(THREE).wants_connections
    assert made(replace(THREE, key="connection")).wants_connections
    for idle in map(made, (ONE, NEVER, replace(ONE, key="connection"))):
        assert not idle.wants_load
        assert not idle.wants_connections
        assert idle.next_s() == math.inf


def test_runs_that_never_aggregate() -> None:
    never = [
        not made(replace(THREE, never_probability=0.2), seed).wants_load for seed in range(3000)
    ]
    assert sum(never) / 3000 == pytest.approx(0.2, abs=4 * math.sqrt(0.16 / 3000))
    history = drive(made(NEVER), 60, saturating)
    assert {one.state.down_rate_bps for one in history} == {0.4 * PLATEAU_BPS}


def ramp_s(seed: int) -> float:
    return came_up(drive(made(CarrierSettings(2), seed), 25, saturating))[0][0] - STEP_S - 0.05


def test_ramps_are_as_long_as_the_thesis_says() -> None:
    """Typically 2.5 s, one in ten 10 to 20 s (thesis 3.1.4)."""
    delays = [ramp_s(seed) for seed in range(200)]
    slow = [delay for delay in delays if delay >= 9.9]
    typical = [delay for delay in delays if delay < 9.9]
    assert all(delay < 20.1 for delay in slow)
    assert len(slow) / 200 == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 200))
    assert statistics.median(typical) == pytest.approx(2.5, rel=0.1)
    logs = [math.log(delay) for delay in typical]
    assert statistics.stdev(logs) == pytest.approx(0.3, rel=0.2)


def test_each_ramp_has_its_own_length() -> None:
    history = drive(
        made(replace(THREE, slow_probability=0.0)),
        60,
        lambda t_s: 0.0 if t_s % 20 > 14 else 2.0 * PLATEAU_BPS,
    )
    full = [t_s for t_s, carriers in came_up(history) if carriers == 3]
    lengths = {round(t_s % 20, 1) for t_s in full}
    assert len(full) == len(lengths) == 3


@given(SETTINGS, st.integers(), st.floats(0, 2), st.floats(0.1, 3))
def test_between_first_share_and_plateau_and_the_same_again(
    settings: CarrierSettings, seed: int, offered: float, period_s: float
) -> None:
    def on_off(t_s: float) -> float:
        return offered * PLATEAU_BPS if t_s % period_s < period_s / 2 else 0.0

    def connections(t_s: float) -> frozenset[int]:
        return frozenset((int(t_s / 2), 1000))

    history = drive(Carriers(settings, Random(seed)), 5, on_off, connections)
    for one in history:
        assert 1 <= one.state.carriers <= settings.count
        least = PLATEAU_BPS * (settings.first_share if settings.count > 1 else 1)
        assert least - 1 <= one.state.down_rate_bps <= PLATEAU_BPS
    assert drive(Carriers(settings, Random(seed)), 5, on_off, connections) == history
