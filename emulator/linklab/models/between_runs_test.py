import math
import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.models.between_runs import MAX_RELATIVE_SD, BetweenRuns
from linklab.models.layer import NO_LOAD, LinkState

STATE = LinkState(True, 80_000_000, 20_000_000, 0.025, 0.0, 0.0)
SDS = st.floats(0, MAX_RELATIVE_SD)


@given(SDS, st.integers())
def test_one_positive_factor_per_run(relative_sd: float, seed: int) -> None:
    layer = BetweenRuns(relative_sd, Random(seed))
    assert abs(layer.factor - 1) <= 2.5 * relative_sd
    first = layer.apply(0.0, NO_LOAD, STATE)
    assert first.down_rate_bps > 0
    assert first.down_rate_bps == round(80_000_000 * layer.factor)
    assert first.up_rate_bps == round(20_000_000 * layer.factor)
    assert layer.apply(1000.0, NO_LOAD, STATE) == first
    assert layer.next_s() == math.inf
    assert BetweenRuns(relative_sd, Random(seed)).factor == layer.factor


def test_no_deviation_changes_nothing() -> None:
    assert BetweenRuns(0, Random(1)).apply(0.0, NO_LOAD, STATE) == STATE


def test_mean_and_deviation_over_many_runs() -> None:
    factors = [BetweenRuns(0.3, Random(seed)).factor for seed in range(4000)]
    assert max(abs(factor - 1) for factor in factors) <= 2.5 * 0.3
    assert statistics.mean(factors) == pytest.approx(1, abs=3 * 0.3 / math.sqrt(4000))
    assert statistics.stdev(factors) == pytest.approx(0.3 * 0.955, rel=0.04)


@pytest.mark.parametrize("relative_sd", [-0.1, 0.39, math.nan])
def test_deviations_that_make_no_sense(relative_sd: float) -> None:
    with pytest.raises(ValueError, match=r"allowed: 0 to 0\.38"):
        BetweenRuns(relative_sd, Random(1))
