from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models.layer import NO_LOAD, STEP_S, Load
from linklab.models.rrc import Rrc, RrcSettings

BASE = LinkState(True, 40_000_000, 10_000_000, 0.025, 0.0, 0.0)
MODES = {
    "idle": (True, True),
    "promotion": (True, True),
    "connected": (False, False),
    "drx": (True, False),
    "inactive": (True, True),
}


DEFAULT = RrcSettings()


class Queues:
    """Two queues that empty at once whenever they are not held; packets come at set times."""

    def __init__(self, down: Iterable[float] = (), up: Iterable[float] = ()) -> None:
        self._down = sorted(down)
        self._up = sorted(up)
        self._sent = [0, 0]
        self.passed: list[tuple[str, float, float]] = []

    def load(self, t_s: float, state: LinkState | None) -> Load:
        """What the queues say at `t_s` after `state` held for the time up to it."""
        waiting = [0, 0]
        for index, (name, queue) in enumerate((("down", self._down), ("up", self._up))):
            held = state is None or (state.hold_down, state.hold_up)[index]
            come = [at_s for at_s in queue if at_s < t_s]
            if held:
                waiting[index] = len(come)
                continue
            del queue[: len(come)]
            self._sent[index] += len(come)
            self.passed += [(name, at_s, t_s) for at_s in come]
        return Load(
            down_packets=self._sent[0],
            up_packets=self._sent[1],
            down_backlog_bytes=1514 * waiting[0],
            up_backlog_bytes=66 * waiting[1],
        )


def drive(
    queues: Queues, until_s: float, settings: RrcSettings = DEFAULT
) -> list[tuple[float, str]]:
    """Every change of the radio's state; asks when the layer wants to be asked."""
    layer = Rrc(settings)
    t_s, state = 0.0, None
    history: list[tuple[float, str]] = []
    while t_s <= until_s:
        load = queues.load(t_s, state)
        state = layer.apply(t_s, load, BASE)
        assert layer.apply(t_s, load, BASE) == state
        assert (state.hold_down, state.hold_up) == MODES[state.rrc]
        if not history or history[-1][1] != state.rrc:
            history.append((t_s, state.rrc))
        assert layer.next_s() > t_s
        t_s = layer.next_s()
    return history


def test_nothing_wakes_an_idle_radio_but_a_packet() -> None:
    assert drive(Queues(), 100) == [(0, "idle")]
    assert Rrc(DEFAULT).next_s() == STEP_S


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_packet_in_either_queue_promotes(direction: str) -> None:
    queues = Queues(**{direction: [1.001]})
    history = drive(queues, 14)
    assert [mode for _, mode in history] == ["idle", "promotion", "connected", "drx", "idle"]
    times = [t_s for t_s, _ in history]
    assert times[1] == pytest.approx(1.001, abs=STEP_S)
    assert times[2] == pytest.approx(times[1] + 0.26, abs=1e-9)
    # The queue was seen to empty at the next look, half an inactivity later.
    assert times[3] == pytest.approx(times[2] + 0.1, abs=0.05 + 1e-9)
    assert times[4] - times[2] == pytest.approx(11.2, abs=0.05 + 1e-9)


def test_traffic_keeps_it_connected() -> None:
    queues = Queues(up=[0.0], down=[0.5 + 0.09 * number for number in range(100)])
    history = drive(queues, 9)
    assert [mode for _, mode in history][:3] == ["idle", "promotion", "connected"]
    assert [mode for t_s, mode in history if 0.7 < t_s < 9] == []


def test_drx_lets_the_downlink_through_at_the_next_on_instant() -> None:
    queues = Queues(up=[0.0], down=[2.001, 4.0399, 6.0401])
    history = drive(queues, 10)
    woken_s = [t_s for t_s, mode in history if mode == "connected"]
    assert woken_s[1:] == pytest.approx([2.04, 4.04, 6.08])
    assert [come_s for name, come_s, _ in queues.passed if name == "down"] == [
        2.001,
        4.0399,
        6.0401,
    ]


def test_drx_lets_the_uplink_through_and_it_wakes_the_radio() -> None:
    queues = Queues(up=[0.0, 3.001])
    history = drive(queues, 5)
    woken_s = [t_s for t_s, mode in history if mode == "connected"]
    assert woken_s[1] == pytest.approx(3.001, abs=STEP_S)
    assert ("up", 3.001, woken_s[1]) in queues.passed


def test_a_packet_just_before_the_tail_ends_is_not_sent_to_sleep() -> None:
    idle_s = next(t_s for t_s, mode in drive(Queues(up=[0.0]), 20)[1:] if mode == "idle")
    queues = Queues(up=[0.0], down=[idle_s - 0.001])
    modes = [mode for t_s, mode in drive(queues, 20) if 5 < t_s < idle_s + 1]
    assert modes[0] == "connected"
    assert "promotion" not in modes


def test_it_asks_rarely_while_connected_and_never_misses_the_end_of_the_promotion() -> None:
    layer = Rrc(DEFAULT)
    waiting = Load(up_backlog_bytes=66)
    layer.apply(0.3, waiting, BASE)
    assert layer.next_s() == 0.3 + 0.26
    layer.apply(0.56, waiting, BASE)
    assert layer.next_s() == pytest.approx(0.61)


def test_what_holds_below_still_holds() -> None:
    layer = Rrc(RrcSettings(promotion_s=0.0))
    held = LinkState(True, 1, 1, 0.0, 0.0, 0.0, hold_down=True, hold_up=True)
    state = layer.apply(0.0, Load(up_backlog_bytes=1), held)
    assert (state.rrc, state.hold_down, state.hold_up) == ("connected", True, True)
    assert layer.apply(0.0, NO_LOAD, BASE).rrc == "connected"


TIMES = st.lists(st.floats(0, 20), max_size=20)
SETTINGS = st.builds(
    RrcSettings, st.floats(0, 1), st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.floats(0.6, 10)
)


@given(TIMES, TIMES, SETTINGS)
def test_every_packet_passes_in_time(
    down: list[float], up: list[float], settings: RrcSettings
) -> None:
    queues = Queues(down, up)
    drive(queues, 25, settings)
    assert len(queues.passed) == len(down) + len(up)
    longest_s = settings.promotion_s + 2 * STEP_S + settings.drx_cycle_s + settings.inactivity_s
    assert all(seen_s - come_s <= longest_s for _, come_s, seen_s in queues.passed)


def test_5g_wakes_faster_from_inactive_than_from_idle() -> None:
    standalone = RrcSettings(inactive_s=10.0, tail_s=15.0)
    queues = Queues(up=[0.0, 13.001, 40.001])
    history = drive(queues, 41, standalone)
    assert [mode for _, mode in history] == [
        *("idle", "promotion", "connected", "drx", "inactive"),
        *("promotion", "connected", "drx", "inactive", "idle"),
        *("promotion", "connected", "drx"),
    ]
    times = [t_s for t_s, _ in history]
    woke_s = [times[n + 1] - times[n] for n, (_, mode) in enumerate(history) if mode == "promotion"]
    assert woke_s == pytest.approx([0.26, 0.14, 0.26])
