import math
import statistics
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models import layer_test
from linklab.models.layer import NO_LOAD
from linklab.models.slots import Slots, SlotSettings

BASE = LinkState(True, 292_000_000, 21_000_000, 0.0105, 0.0, 0.0)
STILL = SlotSettings()


def history(settings: SlotSettings, seed: int, until_s: float) -> list[tuple[float, LinkState]]:
    return layer_test.history(Slots(settings, Random(seed)), BASE, until_s)


def mean(changes: list[tuple[float, LinkState]], until_s: float, name: str) -> float:
    """The mean of a value over time."""
    ends = [*(t_s for t_s, _ in changes[1:]), until_s]
    spans = zip(changes, ends, strict=True)
    values = ((float(getattr(state, name)), end_s - t_s) for (t_s, state), end_s in spans)
    return sum(value * lasts_s for value, lasts_s in values) / until_s


@pytest.mark.parametrize(
    ("start_s", "boundaries"),
    [(0.0, [12, 27, 42, 57]), (20.0, [7, 22, 37, 52]), (12.0, [15, 30]), (11.5, [0.5, 15.5])],
)
def test_slots_begin_at_12_27_42_and_57(start_s: float, boundaries: list[float]) -> None:
    lossy = [t_s for t_s, one in history(replace(STILL, start_s=start_s), 1, 59) if one.loss_ratio]
    assert lossy[: len(boundaries)] == boundaries


def test_a_run_that_begins_at_random_begins_within_the_minute() -> None:
    """The first slot of 120 s begins at the second 120 of the clock, after 60 to 120 s of the run."""
    drawn = replace(STILL, length_s=120.0, first_s=0.0, start_s=None)
    first = [next(t_s for t_s, one in history(drawn, n, 130) if one.loss_ratio) for n in range(200)]
    assert (min(first), max(first)) == pytest.approx((60, 120), abs=2)
    assert statistics.mean(first) == pytest.approx(90, abs=4)


def test_packets_are_lost_one_by_one_at_the_beginning_of_a_slot() -> None:
    lossy = [one for _, one in history(STILL, 1, 60) if one.loss_ratio]
    assert {(one.loss_ratio, one.loss_burst_packets) for one in lossy} == {(0.9, 1.0)}


def test_the_jitter_of_the_link_stays_below_its_delay() -> None:
    base = replace(BASE, delay_s=0.001, jitter_s=0.0009)
    layer = Slots(replace(STILL, rtt_sd_s=0.001), Random(1))
    states = [layer.apply(15.0 * n, NO_LOAD, base) for n in range(200)]
    assert all(one.jitter_s == min(0.0009, one.delay_s) for one in states)
    assert {one.jitter_s == 0.0009 for one in states} == {True, False}


def test_the_averages_are_those_of_the_link() -> None:
    """Of the rate, a fifteenth of the time lacks 19 %."""
    until_s = 15 * 8_000.0
    changes = history(STILL, 1, until_s)
    full = 1 - 0.19 / 15
    for name, expected in (
        ("down_rate_bps", 292e6 * full),
        ("up_rate_bps", 21e6 * full),
        ("delay_s", 0.0105),
        ("loss_ratio", 0.0036),
    ):
        assert mean(changes, until_s, name) == pytest.approx(expected, rel=0.02)


def test_every_slot_has_its_own_rate_and_delay() -> None:
    begun = [one for t_s, one in history(STILL, 1, 15_000) if (t_s - 12) % 15 == 0]
    rates = [one.down_rate_bps / 292e6 for one in begun]
    assert len(set(rates)) > 900
    assert (min(rates), max(rates)) == pytest.approx((0.545, 1.455), abs=0.02), "2.27 times 20 %"
    quartiles = statistics.quantiles([2000 * one.delay_s for one in begun], n=4)
    assert quartiles == pytest.approx([18.3, 21, 23.7], abs=0.4)


@pytest.mark.parametrize("seed", range(4))
def test_means_and_deviations_of_the_slots_are_those_of_the_keys(seed: int) -> None:
    """Up to the largest ones that the keys allow."""
    random = Random(seed)
    share = 1 if seed == 0 else random.random()
    delay_s = random.uniform(0.001, 0.5)
    drawn = SlotSettings(
        length_s=random.uniform(2, 60),
        rtt_sd_s=share * 0.43 * 2 * delay_s,
        rate_sd=share * 0.4,
        burst_s=0.0,
    )
    layer = Slots(drawn, Random(seed))
    slots = [
        layer.apply((number + 0.01) * drawn.length_s, NO_LOAD, replace(BASE, delay_s=delay_s))
        for number in range(5000)
    ]
    for mean, sd, found in (
        (1.0, drawn.rate_sd, [one.down_rate_bps / 292e6 for one in slots]),
        (2 * delay_s, drawn.rtt_sd_s, [2 * one.delay_s for one in slots]),
    ):
        assert statistics.mean(found) == pytest.approx(mean, abs=4 * sd / math.sqrt(5000))
        assert statistics.stdev(found) == pytest.approx(sd, rel=0.03)


def test_the_last_second_is_slower() -> None:
    changes = history(STILL, 1, 60)
    slower = [
        after.down_rate_bps / before.down_rate_bps
        for before, after in (
            (changes[n - 1][1], one) for n, (t_s, one) in enumerate(changes) if t_s % 15 == 11
        )
    ]
    assert slower == pytest.approx([0.81] * 4, rel=1e-6)


@given(
    st.builds(
        SlotSettings,
        st.floats(2, 60),
        st.floats(0, 60),
        st.none() | st.floats(0, 60),
        st.floats(0, 1),
        st.floats(0, 0.4),
        st.floats(0, 5),
        st.floats(0, 0.99),
        st.floats(0, 1),
    ),
    st.integers(),
)
def test_rates_and_delays_are_possible(settings: SlotSettings, seed: int) -> None:
    for _, state in history(settings, seed, 100):
        assert state.down_rate_bps >= 1000
        assert state.delay_s >= 0
        assert 0 <= state.loss_ratio < 1
