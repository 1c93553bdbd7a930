import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.impairments import Impairments
from linklab.core.limits import MIN_RATE_BPS
from linklab.core.link_state import LinkState
from linklab.models.events import Event, Events, in_force, noted, round_trip
from linklab.models.layer import NO_LOAD, Load
from linklab.models.model import Happening

STATE = LinkState(
    up=True,
    down_rate_bps=80_000_000,
    up_rate_bps=20_000_000,
    delay_s=0.005,
    jitter_s=0.001,
    loss_ratio=0.01,
    loss_burst_packets=3.0,
)


def after(*events: Event, t_s: float = 1.0, load: Load = NO_LOAD) -> LinkState:
    return Events(events).apply(t_s, load, STATE)


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (Event("w", 1.0, carrier="down"), {"up": False}),
        (
            Event("w", 1.0, down_rate_bps=5_000, up_rate_bps=6_000),
            {"down_rate_bps": 5_000, "up_rate_bps": 6_000},
        ),
        (Event("w", 1.0, rtt_s=0.3, jitter_s=0.0), {"delay_s": 0.15, "jitter_s": 0.0}),
        (Event("w", 1.0, rtt_s=0.001), {"delay_s": 0.0005, "jitter_s": 0.0005}),
        (Event("w", 1.0, loss_ratio=0.2), {"loss_ratio": 0.2, "loss_burst_packets": 1.0}),
        (Event("w", 1.0, fade_ratio=0.25), {"down_rate_bps": 20_000_000, "up_rate_bps": 5_000_000}),
        (
            Event("w", 1.0, fade_ratio=0.0),
            {
                "down_rate_bps": MIN_RATE_BPS,
                "up_rate_bps": MIN_RATE_BPS,
                "hold_down": True,
                "hold_up": True,
            },
        ),
        (Event("w", 1.0, cap_bps=30_000_000), {"down_rate_bps": 30_000_000}),
        (Event("w", 1.0, cross_bps=30_000_000), {"down_rate_bps": 50_000_000}),
        (Event("w", 1.0, cross_bps=90_000_000), {"down_rate_bps": MIN_RATE_BPS, "hold_down": True}),
        (Event("w", 1.0, outage=True), {"blackout": True}),
        (Event("w", 1.0, handover="next"), {}),
    ],
)
def test_each_kind(event: Event, changes: dict[str, object]) -> None:
    assert after(event) == replace(STATE, **changes)  # type: ignore[arg-type]
    assert after(event, t_s=0.999) == STATE


def test_no_event_brings_a_carrier_that_the_radio_lacks() -> None:
    down, up = Event("w", 0.5, carrier="down"), Event("w", 1.0, carrier="up")
    assert after(down, up).up
    assert not Events([down, up]).apply(1.0, NO_LOAD, replace(STATE, up=False)).up


def test_what_happens_next_is_known_and_lies_ahead() -> None:
    events = Events([Event("w", 1.0, duration_s=0.5, outage=True), Event("w", 2.0, carrier="down")])
    seen = []
    t_s = 0.0
    while math.isfinite(t_s):
        events.apply(t_s, NO_LOAD, STATE)
        assert events.next_s() > t_s
        t_s = events.next_s()
        seen.append(t_s)
    assert seen == [1.0, 1.5, 2.0, math.inf]


def test_later_events_come_over_earlier_ones() -> None:
    one = Event("w", 1.0, down_rate_bps=10_000_000)
    two = Event("w", 2.0, duration_s=1.0, down_rate_bps=20_000_000)
    events = Events([two, one])
    rates = [events.apply(t, NO_LOAD, STATE).down_rate_bps for t in (1.0, 2.0, 3.0)]
    assert rates == [10_000_000, 20_000_000, 10_000_000]


def test_bytes_received_begin_an_event_and_are_asked_for_until_then() -> None:
    events = Events([Event("w", after_bytes=5_000, duration_s=1.0, outage=True)], step_s=0.1)
    assert events.wants_load
    assert not events.apply(0.0, Load(received_bytes=4_999), STATE).blackout
    assert events.next_s() == pytest.approx(0.1)
    assert events.apply(0.1, Load(received_bytes=5_000), STATE).blackout
    assert not events.wants_load
    assert events.next_s() == pytest.approx(1.1)
    assert not events.apply(1.1, Load(received_bytes=9_000), STATE).blackout


def test_begun_events_are_told_once() -> None:
    first, second = Event("w", 1.0, outage=True), Event("w", 2.0, carrier="down")
    events = Events([first, second])
    events.apply(1.0, NO_LOAD, STATE)
    assert events.begun() == [first]
    assert events.begun() == []
    events.apply(5.0, NO_LOAD, STATE)
    assert events.begun() == [second]


def test_ended_events_are_told_once() -> None:
    short, lasting = Event("w", 1.0, duration_s=0.5, cap_bps=1), Event("w", 1.0, cross_bps=1)
    events = Events([short, lasting])
    events.apply(1.0, NO_LOAD, STATE)
    assert events.ended() == []
    events.apply(1.5, NO_LOAD, STATE)
    assert events.ended() == [short]
    events.apply(9.0, NO_LOAD, STATE)
    assert events.ended() == []


def test_an_event_that_was_slept_through_began_and_ended() -> None:
    events = Events([Event("w", 1.0, duration_s=0.5, fade_ratio=0.5)])
    events.apply(5.0, NO_LOAD, STATE)
    assert len(events.begun()) == len(events.ended()) == 1


def test_an_event_can_be_added_while_the_link_runs() -> None:
    events = Events([])
    assert events.next_s() == math.inf
    events.apply(3.0, NO_LOAD, STATE)
    events.add(Event("w", 2.0, carrier="down"))
    assert not events.apply(3.0, NO_LOAD, STATE).up


def test_kinds() -> None:
    assert Event("w", carrier="up", outage=True).kind == "carrier-up"
    assert Event("w", outage=True, down_rate_bps=1).kind == "outage"
    assert Event("w", down_rate_bps=1, loss_ratio=0.1).kind == "rate"
    assert Event("w", loss_ratio=0.0).kind == "loss"
    assert Event("w", rtt_s=0.1).kind == "delay"
    assert Event("w", rtt_s=0.1, impair_up=Impairments(loss_ratio=0.1)).kind == "delay"
    assert Event("w", jitter_s=0.1, impair_up=Impairments(loss_ratio=0.1)).kind == "delay"
    assert Event("w", impair_up=Impairments(loss_ratio=0.1)).kind == "impair"
    assert Event("w", impair_down=Impairments(loss_ratio=0.1)).kind == "impair"


def test_a_value_replaces_that_of_earlier_events_and_other_keys_stay() -> None:
    fade, cap = Event("w", 0.1, fade_ratio=0.5), Event("w", 0.2, cap_bps=10_000_000)
    rate, cross = Event("w", 0.3, down_rate_bps=30_000_000), Event("w", 0.4, cross_bps=4_000_000)
    assert after(fade, cap, rate, cross).down_rate_bps == 6_000_000
    higher = Event("w", 0.5, cap_bps=14_000_000)
    assert after(fade, cap, rate, cross, higher).down_rate_bps == 10_000_000
    back = Event("w", 0.6, fade_ratio=1.0, cap_bps=10**9, cross_bps=0, down_rate_bps=80_000_000)
    assert after(fade, cap, rate, cross, higher, back) == STATE


def test_no_event_ends_an_outage_of_the_radio() -> None:
    end = Event("w", 1.0, outage=False)
    assert not after(Event("w", 0.5, outage=True), end).blackout
    assert Events([end]).apply(1.0, NO_LOAD, replace(STATE, blackout=True)).blackout
    assert end.kind == "outage-end"
    assert noted([end], [end]) == []


EVENTS = st.builds(
    Event,
    st.just("w"),
    st.floats(0, 10),
    duration_s=st.floats(0.1, 5) | st.just(math.inf),
    down_rate_bps=st.none() | st.integers(MIN_RATE_BPS, 10**9),
    fade_ratio=st.none() | st.floats(0, 1),
    cap_bps=st.none() | st.integers(MIN_RATE_BPS, 10**9),
    cross_bps=st.none() | st.integers(MIN_RATE_BPS, 10**9),
    outage=st.booleans(),
)


@given(st.lists(EVENTS, max_size=5), st.floats(0, 20))
def test_rates_can_always_be_shaped_and_asking_again_changes_nothing(
    events: list[Event], t_s: float
) -> None:
    layer = Events(events)
    state = layer.apply(t_s, NO_LOAD, STATE)
    assert min(state.down_rate_bps, state.up_rate_bps) >= MIN_RATE_BPS
    assert layer.apply(t_s, NO_LOAD, STATE) == state
    assert layer.next_s() > t_s


def test_a_rate_of_1_kbit_is_not_held() -> None:
    least = Event("w", 1.0, down_rate_bps=MIN_RATE_BPS, up_rate_bps=MIN_RATE_BPS)
    assert (after(least).hold_down, after(least).hold_up) == (False, False)


def test_events_that_still_change_the_link_of_a_later_one() -> None:
    later = Event("w", 2.0, cap_bps=1)
    lasting, ended = Event("w", 0.0, cap_bps=2), Event("w", 1.0, duration_s=1.0, cap_bps=3)
    lasts_longer = Event("w", 1.0, duration_s=1.5, cap_bps=4)
    elsewhere = Event("l", 0.0, cap_bps=5)
    for_a_while = Event("w", after_bytes=1, duration_s=9.0, cap_bps=6)
    to_the_end = Event("w", after_bytes=1, cap_bps=7)
    some = [lasting, ended, lasts_longer, elsewhere, for_a_while, to_the_end]
    assert in_force(some, later) == [lasting, lasts_longer, to_the_end]
    assert in_force(some, Event("w", after_bytes=1, cap_bps=1)) == [lasting, to_the_end]


def test_the_last_change_of_a_round_trip_counts() -> None:
    changes = [Event("w", 0.0, rtt_s=0.1), Event("w", 1.0, jitter_s=0.003), Event("w", cap_bps=1)]
    assert round_trip(0.02, 0.001, changes) == (0.1, 0.003)
    assert round_trip(0.02, 0.001, []) == (0.02, 0.001)


def test_only_what_states_do_not_show_is_noted() -> None:
    fade, carrier = Event("wifi", 1.0, fade_ratio=0.5), Event("wifi", 1.0, carrier="down")
    assert noted([fade, carrier], []) == [Happening("fade")]
    assert noted([carrier], [fade, carrier]) == [Happening("fade-end")]
