import math
import statistics
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec import UNSET

from linklab.core.link_state import LinkState
from linklab.models.layer import NO_LOAD
from linklab.models.pauses import LONGEST, Pause, Pauses

BASE = LinkState(True, 100_000_000, 50_000_000, 0.025, 0.0, 0.0)
STALLS = Pause("stall", 12.6, 0.1, 0.6)
HANDOVERS = Pause("handover", 10, 0.052, 0.067)


def history(pause: Pause, seed: int, until_s: float) -> list[tuple[float, LinkState]]:
    """Every time at which the link changes, with its state from then on."""
    layer = Pauses([pause], [Random(seed)])
    found = [(0.0, layer.apply(0.0, NO_LOAD, BASE))]
    while (t_s := layer.next_s()) <= until_s:
        found.append((t_s, layer.apply(t_s, NO_LOAD, BASE)))
    return found


def lengths_s(pause: Pause, seed: int, until_s: float) -> list[float]:
    """The lengths of the pauses. Those that overlap count as one."""
    found, begun_s = [], math.nan
    for t_s, state in history(pause, seed, until_s):
        if state.pause is UNSET and not math.isnan(begun_s):
            found.append(t_s - begun_s)
            begun_s = math.nan
        elif state.pause is not UNSET and math.isnan(begun_s):
            begun_s = t_s
    return found


@pytest.mark.parametrize("pause", [STALLS, HANDOVERS])
def test_number_and_lengths_are_as_stated(pause: Pause) -> None:
    rare = replace(pause, per_minute=pause.per_minute / 10)  # So that few overlap.
    found = lengths_s(rare, 1, 60 * 10_000)
    assert len(found) / 10_000 == pytest.approx(rare.per_minute, rel=0.05)
    tenths = statistics.quantiles(found, n=10)
    assert (tenths[4], tenths[8]) == pytest.approx((pause.median_s, pause.p90_s), rel=0.07)
    assert max(found) <= LONGEST * pause.p90_s * 2


def test_a_pause_lasts_at_most_four_times_its_90th_percentile() -> None:
    rare = replace(STALLS, per_minute=0.1, p90_s=3.0)
    assert max(lengths_s(rare, 1, 60 * 10_000)) == pytest.approx(12.0)


def test_the_stalls_that_were_measured_have_the_third_percentile_that_was_too() -> None:
    found = lengths_s(Pause("stall", 1, 0.1, 0.6, longest_s=60), 1, 60 * 20_000)
    assert statistics.quantiles(found, n=100)[98] == pytest.approx(2.4, rel=0.15)


def test_a_run_begins_without_a_pause() -> None:
    begun = [history(STALLS, seed, 60)[:2] for seed in range(20)]
    assert all(first == (0.0, BASE) and second[1].pause == "stall" for first, second in begun)


@pytest.mark.parametrize(
    ("pause", "during"),
    [
        (STALLS, {"hold_down": True, "hold_up": True}),
        (replace(STALLS, is_lossy=True), {"blackout": True}),
        (replace(STALLS, left_ratio=0.01), {"down_rate_bps": 1_000_000, "up_rate_bps": 500_000}),
    ],
)
def test_what_a_pause_does(pause: Pause, during: dict[str, object]) -> None:
    states = {state for _, state in history(pause, 1, 600)}
    assert states == {BASE, replace(BASE, pause="stall", **during)}  # type: ignore[arg-type]


@examples(max_examples=50)
@given(
    st.builds(
        Pause,
        st.just("x"),
        st.floats(0.001, 600),
        st.floats(0.001, 5),
        st.floats(5, 20),
        left_ratio=st.floats(0, 1),
    ),
    st.integers(),
)
def test_rates_are_above_zero_and_a_seed_repeats_all(pause: Pause, seed: int) -> None:
    found = history(pause, seed, 30)
    assert history(pause, seed, 30) == found
    times = [t_s for t_s, _ in found]
    assert times == sorted(set(times))
    assert all(1000 <= state.down_rate_bps <= BASE.down_rate_bps for _, state in found)


def test_asking_more_often_changes_nothing() -> None:
    once = Pauses([STALLS, HANDOVERS], [Random(1), Random(2)])
    often = Pauses([STALLS, HANDOVERS], [Random(1), Random(2)])
    for tick in range(6000):
        state = often.apply(tick / 100, NO_LOAD, BASE)
        assert often.next_s() > tick / 100
    assert once.apply(59.99, NO_LOAD, BASE) == state
