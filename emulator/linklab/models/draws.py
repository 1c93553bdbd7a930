"""Random times: exponential and lognormal ones, the same to the last bit on every machine.

`random` turns its numbers into these with the C library's logarithm and exponential; here it is
`bit_exact_math`. Uniform numbers come from `random` itself, whose series Python guarantees. Pure.
"""

from __future__ import annotations

from random import Random

from linklab.core import bit_exact_math

_MAGIC = 1.7155277699214135
"""4 / √(2e), the width of the rectangle around the region of accepted ratios."""


def exponential(random: Random, mean: float) -> float:
    """An exponential number with that mean."""
    return -bit_exact_math.log(1.0 - random.random()) * mean


def lognormal(random: Random, median: float, sigma: float) -> float:
    """A number whose logarithm is normal around the median's, with the deviation `sigma`."""
    return median * bit_exact_math.exp(sigma * _normal(random))


def _normal(random: Random) -> float:
    """A standard normal number, by the ratio of two uniform ones (Kinderman), as
    `Random.normalvariate` draws it."""
    while True:
        first = random.random()
        second = 1.0 - random.random()
        ratio = _MAGIC * (first - 0.5) / second
        if ratio * ratio / 4.0 <= -bit_exact_math.log(second):
            return ratio
