import statistics
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models import layer_test
from linklab.models.layer import NO_LOAD
from linklab.models.spread import RateSpread, SpreadOfLink, SpreadSettings

BASE = LinkState(True, 200_000_000, 53_000_000, 0.0255, 0.0, 0.0)
CHICAGO = SpreadOfLink(
    SpreadSettings(26_000_000, 572_000_000, 21_000_000, 105_000_000), 200_000_000, 53_000_000
)


def rates(spread: SpreadOfLink, seed: int, count: int) -> list[tuple[int, int]]:
    """The rates of the first steps."""
    until_s = (count - 0.5) * spread.settings.step_s
    found = layer_test.history(RateSpread(spread, Random(seed)), BASE, until_s)
    return [(state.down_rate_bps, state.up_rate_bps) for _, state in found]


def test_the_percentiles_are_as_stated() -> None:
    many = [rate for seed in range(40) for rate in rates(CHICAGO, seed, 1000)]
    for direction, stated in ((0, (26e6, 200e6, 572e6)), (1, (21e6, 53e6, 105e6))):
        tenths = statistics.quantiles([one[direction] for one in many], n=10)
        assert (tenths[0], tenths[4], tenths[8]) == pytest.approx(stated, rel=0.1)


@pytest.mark.parametrize("step_s", [1.0, 2.0])
def test_rates_are_alike_for_as_long_as_stated(step_s: float) -> None:
    """The position's correlation falls to 1/e in `memory`; a rank is a position."""
    spread = replace(CHICAGO, settings=replace(CHICAGO.settings, step_s=step_s))
    series = [one for one, _ in rates(spread, 1, 20_000)]
    ranks = {rate: n / len(series) for n, rate in enumerate(sorted(series))}
    positions = [ranks[one] for one in series]
    for after_s, expected in ((2, 0.78), (8, 0.37), (40, 0.0)):
        lag = round(after_s / step_s)
        correlation = statistics.correlation(positions[:-lag], positions[lag:])
        assert correlation == pytest.approx(expected, abs=0.06)


@given(st.integers(), st.floats(0.1, 600), st.floats(0.02, 60), st.integers(1000, 200_000_000))
def test_rates_are_above_zero(seed: int, memory_s: float, step_s: float, low: int) -> None:
    settings = SpreadSettings(low, None, None, 53_000_000, memory_s, step_s)
    spread = SpreadOfLink(settings, 200_000_000, 53_000_000)
    found = rates(spread, seed, 30)
    assert all(1000 <= down <= 200_000_000 and up == 53_000_000 for down, up in found)


def test_rates_change_at_each_step() -> None:
    spread = replace(CHICAGO, settings=replace(CHICAGO.settings, step_s=0.5))
    layer = RateSpread(spread, Random(1))
    found = [(layer.apply(t_s, NO_LOAD, BASE), layer.next_s()) for t_s in (0.0, 0.5, 1.0, 1.5)]
    assert [next_s for _, next_s in found] == [0.5, 1.0, 1.5, 2.0]
    assert len({state.down_rate_bps for state, _ in found}) == 4


def test_a_walk_is_reflected_as_often_as_it_takes() -> None:
    """With steps far longer than the memory the position is anywhere, and never beyond its ends."""
    wide = replace(CHICAGO.settings, memory_s=0.1, step_s=60.0)
    found = [one for one, _ in rates(replace(CHICAGO, settings=wide), 1, 5000)]
    ends = (200e6 * (26 / 200) ** 1.25, 200e6 * (572 / 200) ** 1.25)
    assert (min(found), max(found)) == pytest.approx(ends, rel=0.02)


def test_without_a_percentile_rates_stay_at_the_median_on_that_side() -> None:
    low = replace(CHICAGO, settings=SpreadSettings(down_p10_bps=26_000_000))
    found = [one for one, _ in rates(low, 1, 5000)]
    assert found.count(200_000_000) / 5000 == pytest.approx(0.5, abs=0.1)
