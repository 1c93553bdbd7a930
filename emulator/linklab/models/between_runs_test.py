import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models.between_runs import MAX_RELATIVE_SD, BetweenRuns
from linklab.models.layer import NO_LOAD

STATE = LinkState(True, 80_000_000, 20_000_000, 0.025, 0.0, 0.0)
SDS = st.floats(0, MAX_RELATIVE_SD)


@given(SDS, st.floats(0, 1))
def test_one_positive_factor_per_run(relative_sd: float, quantile: float) -> None:
    layer = BetweenRuns(relative_sd, quantile)
    assert abs(layer.factor - 1) <= 2.62 * relative_sd
    first = layer.apply(0.0, NO_LOAD, STATE)
    assert first.down_rate_bps > 0
    assert first.down_rate_bps == round(80_000_000 * layer.factor)
    assert first.up_rate_bps == round(20_000_000 * layer.factor)
    assert layer.apply(1000.0, NO_LOAD, STATE) == first
    assert layer.next_s() == math.inf
    assert BetweenRuns(relative_sd, quantile).factor == layer.factor


def test_no_deviation_changes_nothing() -> None:
    assert BetweenRuns(0, 0.1).apply(0.0, NO_LOAD, STATE) == STATE


def test_mean_and_deviation_over_many_runs() -> None:
    factors = [BetweenRuns(0.3, (n + 0.5) / 4000).factor for n in range(4000)]
    assert factors == sorted(factors)
    assert max(abs(factor - 1) for factor in factors) == pytest.approx(2.5 / 0.9546 * 0.3, rel=0.01)
    assert statistics.mean(factors) == pytest.approx(1, abs=1e-6)
    assert statistics.stdev(factors) == pytest.approx(0.3, rel=0.001)
