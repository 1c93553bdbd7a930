import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models import layer_test
from linklab.models.pauses import LONGEST, NORMAL_P90, Pause, Pauses

BASE = LinkState(True, 100_000_000, 50_000_000, 0.025, 0.0, 0.0)
STALLS = Pause("stall", 12.6, 0.1, 0.6)


def history(pauses: Sequence[Pause], seed: int, until_s: float) -> list[tuple[float, LinkState]]:
    layer = Pauses(pauses, [Random(seed + n) for n, _ in enumerate(pauses)])
    return layer_test.history(layer, BASE, until_s)


def lengths_s(pauses: Sequence[Pause], seed: int, until_s: float) -> dict[str, list[float]]:
    """The lengths of the outages that the link shows, by kind. Every second change begins one."""
    changes = history(pauses, seed, until_s)[1:]
    found: dict[str, list[float]] = {pause.name: [] for pause in pauses}
    for (begun_s, during), (ended_s, after) in zip(changes[::2], changes[1::2], strict=False):
        assert after == BASE
        found[str(during.pause)].append(ended_s - begun_s)
    return found


def mean_s(median_s: float, p90_s: float, longest_s: float) -> float:
    """The mean of a lognormal length that is cut at the longest one, in closed form."""
    normal, sigma = statistics.NormalDist(), math.log(p90_s / median_s) / NORMAL_P90
    cut = math.log(longest_s / median_s) / sigma
    below_s = median_s * math.exp(sigma**2 / 2) * normal.cdf(cut - sigma)
    return below_s + longest_s * normal.cdf(-cut)


@pytest.mark.parametrize("seed", range(6))
def test_each_kind_has_its_number_and_lengths_however_much_of_the_time_they_take(
    seed: int,
) -> None:
    random = Random(seed)
    shares = [random.uniform(0.1, 0.95)] if seed % 2 else [random.uniform(0.1, 0.45)] * 2
    pauses, means_s = [], []
    for name, share in zip("xy", shares, strict=False):
        median_s = random.uniform(0.2, 1)
        p90_s = median_s * random.uniform(1.1, 6)
        longest_s = p90_s * random.uniform(1, 3)
        means_s.append(mean_s(median_s, p90_s, longest_s))
        pauses.append(Pause(name, 60 * share / means_s[-1], median_s, p90_s, longest_s))
    minutes = 6000 / sum(pause.per_minute for pause in pauses)
    found = lengths_s(pauses, seed, 60 * minutes)
    for pause, mean in zip(pauses, means_s, strict=True):
        lengths = found[pause.name]
        off = 4 / math.sqrt(len(lengths))
        assert len(lengths) / minutes == pytest.approx(pause.per_minute, rel=off)
        assert statistics.mean(lengths) == pytest.approx(mean, rel=off)
        assert max(lengths) == pytest.approx(pause.longest_s), "about 1 in 100 is cut"
        tenths = statistics.quantiles(lengths, n=10)
        assert (tenths[4], tenths[8]) == pytest.approx((pause.median_s, pause.p90_s), rel=2 * off)


def test_a_pause_lasts_at_most_four_times_its_90th_percentile() -> None:
    found = lengths_s([replace(STALLS, p90_s=3.0)], 1, 60 * 100)
    assert max(found["stall"]) == pytest.approx(LONGEST * 3.0)


def test_the_stalls_that_were_measured_have_the_third_percentile_that_was_too() -> None:
    found = lengths_s([replace(STALLS, longest_s=60)], 1, 60 * 1000)
    assert statistics.quantiles(found["stall"], n=100)[98] == pytest.approx(2.4, rel=0.15)


def test_a_run_begins_without_a_pause() -> None:
    begun = [history([STALLS], seed, 60)[:2] for seed in range(20)]
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
    states = {state for _, state in history([pause], 1, 600)}
    assert states == {BASE, replace(BASE, pause="stall", **during)}  # type: ignore[arg-type]


@given(
    st.builds(
        Pause,
        st.just("x"),
        st.floats(0.001, 3),
        st.floats(0.001, 5),
        st.floats(5, 19),
        st.floats(19, 20),
        left_ratio=st.floats(0, 1),
    ),
    st.integers(),
)
def test_rates_are_above_zero(pause: Pause, seed: int) -> None:
    found = history([pause], seed, 30)
    assert all(1000 <= state.down_rate_bps <= BASE.down_rate_bps for _, state in found)
