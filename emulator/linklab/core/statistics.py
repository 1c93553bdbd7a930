"""Statistics of measurements, on numpy; the bootstrap is scipy's. Pure.

Loading numpy takes a tenth of a second: commands that run something load this module once there are
figures, and the guest never does (`cli_test.py`). Values may have any unit, which the results
share, and must be finite. Whatever is undefined for the values given is a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

RESAMPLES: Final = 2000
"""How often the bootstrap draws: a 95 % limit then lies between order statistics 50 and 51 from
either end, which a median of ten runs cannot tell apart."""


LEAST_VALUES: Final = 5
"""How many values the bootstrap needs. It reaches no further than from the least to the most, which
hold the median between them 94 times in 100 where they are five, 88 where four, 75 where three."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, both ends in the unit of the values."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the value lies inside, ends included."""
        return self.low <= value <= self.high


def _numbers(values: Iterable[float], least: int = 1) -> Numbers:
    numbers = np.fromiter(values, dtype=np.float64)
    if len(numbers) < least:
        raise ValueError(f"{len(numbers)} values; at least {least} are needed")
    if not np.isfinite(numbers).all():
        raise ValueError("a value is not finite")
    return numbers


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    return float(np.median(_numbers(values)))


def percentile(values: Iterable[float], percent: float) -> float:
    """The value below which `percent` of 100 lie, linear between two."""
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile of {percent}; allowed: 0 to 100")
    return float(np.percentile(_numbers(values), percent))


def rms(values: Iterable[float]) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(_numbers(values) ** 2)))


def standard_deviation(values: Iterable[float]) -> float:
    """Of a sample (n - 1) of at least two values; exactly 0 where all are equal."""
    numbers = _numbers(values, 2)
    return float(np.std(numbers, ddof=1)) if np.ptp(numbers) else 0.0


def coefficient_of_variation(values: Iterable[float]) -> float:
    """Standard deviation by mean (thesis 3.4), as a ratio."""
    numbers = _numbers(values, 2)
    mean = float(np.mean(numbers))
    if mean == 0:
        raise ValueError("values with a mean of 0 have no coefficient of variation")
    return standard_deviation(numbers) / mean


def simpson(values: Sequence[float], at: Sequence[float]) -> float:
    """The integral of what was sampled `at` ascending places, by Simpson's rule (thesis 3.4), in
    the product of both units. For unequal steps, and an odd last one, after K. Cartwright (J. of
    Math. Sciences and Math. Education 12:2, 2017). To the digit `scipy.integrate.simpson`, which
    an installation without extras lacks.
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
            (2 * last**2 + 3 * h * last) / (6 * (last + h)) * y[-1]
            + (last**2 + 3.0 * h * last) / (6 * h) * y[-2]
            - last**3 / (6 * h * (h + last)) * y[-3]
        )
    return area


def median_interval(values: Iterable[float], level: float = 0.95, seed: int = 0) -> Interval:
    """Where the median lies, by the percentile bootstrap."""
    return bootstrap(np.median, [values], level=level, seed=seed)


def median_ratio_interval(
    values: Iterable[float],
    reference: Iterable[float],
    *,
    paired: bool,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Where the ratio of two medians lies, by the bootstrap. `paired` values belong to the same
    seeds in the same order, and are drawn together."""
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
    """Where a statistic of one or more samples lies, by the percentile bootstrap (Efron): the same
    for the same values and seed. Each sample has at least LEAST_VALUES; `statistic` takes an array
    for each, and `axis`."""
    numbers = [_numbers(values, LEAST_VALUES) for values in samples]
    _check(level)
    if paired and len({len(one) for one in numbers}) > 1:
        raise ValueError("paired samples differ in length")
    from scipy import stats  # Slow to load, and an extra.

    found = stats.bootstrap(
        numbers,
        statistic,
        paired=paired,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(found.low), float(found.high))


def _check(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"a confidence level of {level}; allowed: between 0 and 1")


def comparison_matrix(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Each value as percent of each other one: `[row][column]`, as in thesis tables 5.2, 5.4 and
    5.7 to 5.9. A column of 0 is left out."""
    return {
        row: {
            column: 100 * value / other
            for column, other in values.items()
            if column != row and other != 0
        }
        for row, value in values.items()
    }
