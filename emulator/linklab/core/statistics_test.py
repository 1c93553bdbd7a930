"""Tests statistics against numbers computed by hand, by numpy and scipy, and the thesis' derived
tables.

Values that do not follow from the thesis' raw figures are left out by name.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from linklab.core import statistics
from linklab.core.statistics import Interval

VALUES = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=40)


def close(value: float, reference: float) -> bool:
    return math.isclose(value, reference, rel_tol=1e-9, abs_tol=1e-9)


# --- By hand.


def test_deviation_is_that_of_a_sample() -> None:
    assert statistics.standard_deviation([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(
        math.sqrt(32 / 7)
    )
    assert statistics.standard_deviation([0.1] * 7) == 0
    assert statistics.coefficient_of_variation([1, 3]) == pytest.approx(math.sqrt(2) / 2)


def test_interval_holds_its_ends() -> None:
    one = Interval(1, 2)
    assert (one.holds(1), one.holds(2), one.holds(0.99), one.holds(2.01)) == (
        True,
        True,
        False,
        False,
    )


def test_matrix() -> None:
    assert statistics.comparison_matrix({"a": 2.0, "b": 4.0, "c": 0.0}) == {
        "a": {"b": 50},
        "b": {"a": 200},
        "c": {"a": 0, "b": 0},
    }


# --- Beside numpy and scipy.


@given(VALUES, st.floats(0, 100))
def test_as_numpy(values: list[float], percent: float) -> None:
    assert close(statistics.median(values), float(np.median(values)))
    assert close(statistics.percentile(values, percent), float(np.percentile(values, percent)))
    if np.ptp(values):
        assert close(statistics.standard_deviation(values), float(np.std(values, ddof=1)))


@given(st.lists(st.tuples(st.floats(0.01, 5), st.floats(-100, 100)), min_size=2, max_size=40))
def test_as_scipy(steps: list[tuple[float, float]]) -> None:
    at = np.cumsum([step for step, _ in steps])
    values = [value for _, value in steps]
    assert close(statistics.simpson(values, at.tolist()), scipy.integrate.simpson(values, x=at))


@given(
    st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=7, max_size=20),
    st.booleans(),
    st.integers(0, 99),
)
def test_bootstrap_is_that_of_scipy(
    pairs: list[tuple[float, float]], paired: bool, seed: int
) -> None:
    samples = np.array(pairs).T

    def ratio(x: Any, y: Any, axis: int) -> Any:
        return np.median(x, axis) / np.median(y, axis)

    his = scipy.stats.bootstrap(
        tuple(samples),
        ratio,
        paired=paired,
        vectorized=True,
        n_resamples=statistics.RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    found = statistics.median_ratio_interval(*samples, paired=paired, seed=seed)
    assert close(found.low, his.low)
    assert close(found.high, his.high)


def test_bootstrap_repeats_with_its_seed() -> None:
    values = np.random.default_rng(1).normal(20, 2, 10)
    assert statistics.median_interval(values) == statistics.median_interval(values)
    assert statistics.median_interval(values, 0.9).low >= statistics.median_interval(values).low


@pytest.mark.parametrize("count", [statistics.LEAST_VALUES, 10, 30])
def test_bootstrap_covers_as_often_as_it_says(count: int) -> None:
    randomness = np.random.default_rng(5)
    covered = sum(
        statistics.median_interval(randomness.normal(20, 2, count)).holds(20) for _ in range(200)
    )
    assert 180 <= covered <= 200


@pytest.mark.parametrize("count", [statistics.LEAST_VALUES, 10])
@pytest.mark.parametrize("paired", [True, False])
def test_equals_are_seldom_told_apart(count: int, paired: bool) -> None:
    """A ratio below 1 of what is drawn from one distribution."""
    randomness = np.random.default_rng(7)
    apart = sum(
        statistics.median_ratio_interval(one, other, paired=paired).high < 1
        for one, other in randomness.normal(20, 1, (200, 2, count))
    )
    assert apart <= 10


def test_pairs_tell_more_than_what_they_share() -> None:
    """Runs of one seed have the same links: what they have in common is no noise between them."""
    links = np.random.default_rng(2).normal(20, 5, 10)
    own = np.random.default_rng(3).normal(0, 0.1, 10)
    paired = statistics.median_ratio_interval(links * 0.9 + own, links, paired=True)
    apart = statistics.median_ratio_interval(links * 0.9 + own, links, paired=False)
    assert paired.high < 1 < apart.high
    assert paired.holds(0.9)


# --- What has no answer.


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: statistics.median([]), "0 values; at least 1 are needed"),
        (lambda: statistics.median([1, math.nan]), "a value is not finite"),
        (lambda: statistics.standard_deviation([1]), "1 values; at least 2"),
        (lambda: statistics.percentile([1], 101), "a percentile of 101; allowed: 0 to 100"),
        (lambda: statistics.coefficient_of_variation([-1, 1]), "mean of 0"),
        (lambda: statistics.simpson([1, 2], [1, 1]), "not ascending"),
        (lambda: statistics.simpson([1, 2], [1, 2, 3]), "2 values at 3 places"),
        (lambda: statistics.median_interval([1, 2, 3, 4]), "4 values; at least 5"),
        (lambda: statistics.median_interval(range(5), 1), "a confidence level of 1"),
        (lambda: statistics.median_ratio_interval(range(5), range(6), paired=True), "in length"),
    ],
)
def test_what_is_undefined_is_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()


# --- The thesis' derived tables, from its raw ones.


def test_rms_is_the_root_of_the_mean_square() -> None:
    assert statistics.rms([3.0, -4.0]) == pytest.approx(np.sqrt(12.5), rel=1e-12)
    with pytest.raises(ValueError, match="at least 1"):
        statistics.rms([])
