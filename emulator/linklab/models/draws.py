"""Draws exponential and lognormal numbers, bit-exact on every machine. Pure.

`random` uses the C library's logarithm and exponential. This module uses `bit_exact_math`. Uniform
numbers come from `random`, whose series Python guarantees.
"""

from __future__ import annotations

from random import Random

from linklab.core import bit_exact_math

_MAGIC = 1.7155277699214135
"""4 / √(2e), the width of the rectangle around the accepted region of ratios."""


def exponential(random: Random, mean: float) -> float:
    """Draws an exponential number with this mean."""
    return -bit_exact_math.log(1.0 - random.random()) * mean


def lognormal(random: Random, median: float, sigma: float) -> float:
    """Draws a lognormal number; `sigma` is the standard deviation of its logarithm."""
    return median * bit_exact_math.exp(sigma * normal(random))


def normal(random: Random) -> float:
    """Draws a standard normal number by the ratio of uniforms (Kinderman), like
    `Random.normalvariate`."""
    while True:
        first = random.random()
        second = 1.0 - random.random()
        ratio = _MAGIC * (first - 0.5) / second
        if ratio * ratio / 4.0 <= -bit_exact_math.log(second):
            return ratio
