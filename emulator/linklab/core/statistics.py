"""Computes statistics of measurements with numpy. Pure.

Values may have any unit, which the results share. They must be finite. Raises ValueError if a
statistic is undefined for the values. Loading numpy takes 0.1 s. So commands load this module only
when there are figures, and the guest never does (`cli_test.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

RESAMPLES: Final = 2000
"""The bootstrap's number of draws. A 95 % limit then lies between order statistics 50 and 51 from
either end. For a median of ten runs the two are equal."""


LEAST_VALUES: Final = 5
"""The fewest values for the bootstrap. Its interval cannot exceed the least and the largest value.
These enclose the median with a probability of 94 % for five values, 88 % for four, 75 % for three."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, both ends in the unit of the values."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Tells whether a value lies inside, including the ends."""
        return self.low <= value <= self.high


def _numbers(values: Iterable[float], least: int = 1) -> Numbers:
    numbers = np.fromiter(values, dtype=np.float64)
    if len(numbers) < least:
        raise ValueError(f"{len(numbers)} values; at least {least} are needed")
    if not np.isfinite(numbers).all():
        raise ValueError("a value is not finite")
    return numbers


def median(values: Iterable[float]) -> float:
    """Returns the middle value, or the mean of the two in the middle."""
    return float(np.median(_numbers(values)))


def percentile(values: Iterable[float], percent: float) -> float:
    """Returns the percentile, with linear interpolation."""
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile of {percent}; allowed: 0 to 100")
    return float(np.percentile(_numbers(values), percent))


def rms(values: Iterable[float]) -> float:
    """Returns the root mean square."""
    return float(np.sqrt(np.mean(_numbers(values) ** 2)))


def standard_deviation(values: Iterable[float]) -> float:
    """Returns the sample's standard deviation (n - 1); exactly 0 if all values are equal.

    Needs at least two values.
    """
    numbers = _numbers(values, 2)
    return float(np.std(numbers, ddof=1)) if np.ptp(numbers) else 0.0


def coefficient_of_variation(values: Iterable[float]) -> float:
    """Returns the standard deviation divided by the mean (thesis 3.4)."""
    numbers = _numbers(values, 2)
    mean = float(np.mean(numbers))
    if mean == 0:
        raise ValueError("values with a mean of 0 have no coefficient of variation")
    return standard_deviation(numbers) / mean


def simpson(values: Sequence[float], at: Sequence[float]) -> float:
    """Integrates samples at ascending positions `at` by Simpson's rule (thesis 3.4).

    The unit is the product of both units. Unequal steps, and an odd last one, follow K. Cartwright
    (J. of Math. Sciences and Math. Education 12:2, 2017), as in `scipy.integrate.simpson`. An
    installation without extras has no scipy.
    """
    y, x = _numbers(values, 2), _numbers(at, 2)
    if len(y) != len(x):
        raise ValueError(f"{len(y)} values at {len(x)} places")
    steps = np.diff(x)
    if not (steps > 0).all():
        raise ValueError("the places are not ascending")
    if len(y) == 2:
        return float(0.5 * steps[0] * (y[0] + y[1]))
    left, right = steps[: len(steps) // 2 * 2].reshape(-1, 2).T
    both, ratio = left + right, left / right
    middle = both * (both / (left * right))
    first, second, third = y[:-2:2], y[1:-1:2], y[2::2]
    parabolas = first * (2.0 - 1.0 / ratio) + second * middle + third * (2.0 - ratio)
    area = float(np.sum(both / 6.0 * parabolas))
    if len(steps) % 2:
        h, last = steps[-2:]
        area += float(
            (2 * last * last + 3 * h * last) / (6 * (last + h)) * y[-1]
            + (last * last + 3 * h * last) / (6 * h) * y[-2]
            - last * last * last / (6 * h * (h + last)) * y[-3]
        )
    return area


def median_interval(values: Iterable[float], level: float = 0.95, seed: int = 0) -> Interval:
    """Returns the confidence interval of the median, by the percentile bootstrap."""
    return bootstrap(np.median, [values], level=level, seed=seed)


def median_ratio_interval(
    values: Iterable[float],
    reference: Iterable[float],
    *,
    paired: bool,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Returns the confidence interval of the ratio of two medians, by the bootstrap.

    `paired` values belong to the same seeds in the same order, and are drawn together.
    """
    return bootstrap(
        lambda x, y, axis: np.median(x, axis) / np.median(y, axis),
        [values, reference],
        paired=paired,
        level=level,
        seed=seed,
    )


def bootstrap(
    statistic: Callable[..., Any],
    samples: Sequence[Iterable[float]],
    *,
    paired: bool = False,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Returns the confidence interval of a statistic, by the percentile bootstrap (Efron).

    The same values and seed give the same interval. Each sample has at least LEAST_VALUES values.
    `statistic` takes an array for each sample, and `axis`.
    """
    numbers = [_numbers(values, LEAST_VALUES) for values in samples]
    _check(level)
    if paired and len({len(one) for one in numbers}) > 1:
        raise ValueError("paired samples differ in length")
    random = np.random.default_rng(seed)

    def drawn(one: Numbers) -> Any:
        return random.integers(0, len(one), (RESAMPLES, len(one)))

    which = drawn(numbers[0]) if paired else None
    resampled = [one[drawn(one) if which is None else which] for one in numbers]
    outside = (1 - level) / 2
    found = np.quantile(statistic(*resampled, axis=-1), [outside, 1 - outside])
    return Interval(float(found[0]), float(found[1]))


def _check(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"a confidence level of {level}; allowed: between 0 and 1")


def comparison_matrix(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Returns each value in percent of each other one, as `[row][column]`.

    Thesis tables 5.2, 5.4 and 5.7 to 5.9 have this form. A column of 0 is left out.
    """
    return {
        row: {
            column: 100 * value / other
            for column, other in values.items()
            if column != row and other != 0
        }
        for row, value in values.items()
    }
