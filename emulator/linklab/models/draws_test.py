import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.models import draws


@given(st.integers(0, 2**32), st.floats(1e-3, 1e5))
def test_exponential_times_are_pythons_to_the_last_bits(seed: int, mean: float) -> None:
    expected = Random(seed).expovariate(1 / mean)
    assert draws.exponential(Random(seed), mean) == pytest.approx(expected, rel=1e-13, abs=0)


@given(st.integers(0, 2**32), st.floats(1e-3, 1e3), st.floats(0, 3))
def test_lognormal_times_are_pythons_to_the_last_bits(
    seed: int, median: float, sigma: float
) -> None:
    expected = Random(seed).lognormvariate(math.log(median), sigma)
    assert draws.lognormal(Random(seed), median, sigma) == pytest.approx(expected, rel=1e-13, abs=0)
