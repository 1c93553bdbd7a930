"""Computes exponentials, logarithms and the normal distribution, bit-exact on every machine. Pure.

`math` uses the C library. Its results differ in the last bit between libraries, versions and
processors. Link models compare such results. One bit can move a handover by a packet, and then the
download goes on differently.

These functions round once, from more digits than a double has. They use 28 digits if these decide
the rounding, else 40. A double's exponential or logarithm never needs more than 36 (Lefèvre and
Muller, "Worst Cases for Correct Rounding of the Elementary Functions in Double Precision",
ARITH 15, 2001). A call takes about 10 µs. Sums, products, quotients and `math.sqrt` are bit-exact
everywhere (IEEE 754).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final


def _context(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-9999, Emax=9999, traps=[])


_DIGITS: Final = _context(40)
_FEW: Final = _context(28)
_LN_2: Final = _DIGITS.ln(Decimal(2))
_LN_10: Final = _DIGITS.ln(Decimal(10))

_LESS, _MORE = Decimal(1) - Decimal("1e-23"), Decimal(1) + Decimal("1e-23")
"""A 28-digit result times these encloses the true value. They leave room for about ten roundings,
and for a difference that cancels down to a thousandth."""


def _rounded(few: Decimal, many: Callable[[], Decimal]) -> float:
    """Returns the double nearest to a value that is known to 28 digits.

    If they do not decide between two doubles, `many` does (Ziv, "Fast Evaluation of Elementary
    Mathematical Functions with Correctly Rounded Last Bit", ACM TOMS 17, 1991).
    """
    low = float(_FEW.multiply(few, _LESS))
    return low if low == float(_FEW.multiply(few, _MORE)) else float(many())


def exp(x: float) -> float:
    """Returns e to the power of x."""
    exact = Decimal(x)
    return _rounded(_FEW.exp(exact), lambda: _DIGITS.exp(exact))


def exp2(x: float) -> float:
    """Returns 2 to the power of x."""
    return float(_DIGITS.exp(_DIGITS.multiply(Decimal(x), _LN_2)))


def log(x: float) -> float:
    """Returns the natural logarithm of x. Raises ValueError unless x > 0."""
    exact = _positive(x)
    few = _log(x, exact)
    if few is None:
        return float(_DIGITS.ln(exact))
    return _rounded(few, lambda: _DIGITS.ln(exact))


@functools.lru_cache(256)
def log10(x: float) -> float:
    """Returns the decimal logarithm of x. Raises ValueError unless x > 0.

    It is cached, because a walk asks for the signals of each position several times.
    """
    exact = _positive(x)
    few = _log(x, exact)
    if few is None:
        return float(_DIGITS.log10(exact))
    return _rounded(_FEW.divide(few, _LN_10), lambda: _DIGITS.log10(exact))


def _log(x: float, exact: Decimal) -> Decimal | None:
    """Returns the natural logarithm to 24 digits; None if x is near 1.

    It improves the C library's result by a step of Newton's method, which squares the error.
    """
    about = math.log(x)
    if not 1e-3 < abs(about) < 1e3:
        return None
    start = Decimal(about)
    off = _FEW.subtract(_FEW.multiply(exact, _FEW.exp(-start)), Decimal(1))
    return _FEW.add(start, off)


def _positive(x: float) -> Decimal:
    if not x > 0:
        raise ValueError(f"there is no logarithm of {x}; allowed: more than 0")
    return Decimal(x)


def normal_quantile(p: float) -> float:
    """Returns the quantile of the standard normal distribution for a probability p.

    It has 16 digits: Wichura, "Algorithm AS 241: The Percentage Points of the Normal
    Distribution", Applied Statistics 37 (1988). Raises ValueError unless 0 < p < 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a chance of {p}; allowed: more than 0, less than 1")
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return _polynomial(_A, r) * q / _polynomial(_B, r)
    r = math.sqrt(-log(min(p, 1 - p)))
    if r <= 5:
        x = _polynomial(_C, r - 1.6) / _polynomial(_D, r - 1.6)
    else:
        x = _polynomial(_E, r - 5) / _polynomial(_F, r - 5)
    return math.copysign(x, q)


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    """Evaluates a polynomial (Horner). The coefficient of the highest power comes first."""
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


_A: Final = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_B: Final = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_C: Final = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_D: Final = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_E: Final = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_F: Final = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)
