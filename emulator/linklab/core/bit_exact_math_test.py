import math
import statistics
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core import bit_exact_math

ONE_BIT = 2.0**-52


@given(st.floats(-700, 700))
def test_exponentials_are_the_c_librarys_to_the_last_bit(x: float) -> None:
    assert bit_exact_math.exp(x) == pytest.approx(math.exp(x), rel=2 * ONE_BIT, abs=0)
    assert bit_exact_math.exp2(x) == pytest.approx(2.0**x, rel=2 * ONE_BIT, abs=0)


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_logarithms_are_the_c_librarys_to_the_last_bit(x: float) -> None:
    assert bit_exact_math.log(x) == pytest.approx(math.log(x), rel=2 * ONE_BIT, abs=0)
    assert bit_exact_math.log10(x) == pytest.approx(math.log10(x), rel=2 * ONE_BIT, abs=0)


def test_what_is_a_number_exactly() -> None:
    assert [bit_exact_math.log10(10.0**n) for n in range(20)] == list(range(20))
    assert [bit_exact_math.exp2(n) for n in range(-60, 60)] == [2.0**n for n in range(-60, 60)]
    assert bit_exact_math.exp(0.0) == 1.0
    assert bit_exact_math.log(1.0) == 0.0


@given(st.floats(min_value=0, exclude_min=True, max_value=700))
def test_more_digits_would_not_round_otherwise(x: float) -> None:
    digits = Context(prec=80)
    assert bit_exact_math.log(x) == float(digits.ln(Decimal(x)))
    assert bit_exact_math.log10(x) == float(digits.log10(Decimal(x)))
    assert bit_exact_math.exp(x) == float(digits.exp(Decimal(x)))


@given(st.floats(0.5, 2) | st.floats(min_value=0, exclude_min=True, max_value=700))
def test_another_c_library_makes_no_difference(x: float) -> None:
    plain = bit_exact_math.log(x), bit_exact_math.log10.__wrapped__(x)
    for towards in (math.inf, -math.inf):
        with pytest.MonkeyPatch.context() as patch:
            log = math.log
            patch.setattr(math, "log", lambda x, log=log, to=towards: math.nextafter(log(x), to))
            assert (bit_exact_math.log(x), bit_exact_math.log10.__wrapped__(x)) == plain


def test_what_28_digits_leave_open_is_asked_of_40() -> None:
    """Half-way between two doubles, as far as 28 digits tell."""
    many = Context(prec=80)
    between = many.add(Decimal(1), Decimal(2.0**-53))
    above = many.add(between, Decimal("1e-30"))
    few = Context(prec=28).plus(above)
    assert bit_exact_math._rounded(few, lambda: above) == 1 + 2**-52
    assert bit_exact_math._rounded(few, lambda: between) == 1.0


@pytest.mark.parametrize("x", [0.0, -1.0, math.nan])
def test_there_is_no_logarithm_of_nothing(x: float) -> None:
    for function in (bit_exact_math.log, bit_exact_math.log10):
        with pytest.raises(ValueError, match="allowed: more than 0"):
            function(x)


@given(st.floats(1e-300, 1, exclude_max=True))
def test_normal_quantiles(p: float) -> None:
    expected = statistics.NormalDist().inv_cdf(p)
    assert bit_exact_math.normal_quantile(p) == pytest.approx(expected, rel=1e-14, abs=1e-15)


@given(st.floats(2.0**-53, 0.5))
def test_normal_quantiles_are_symmetric(p: float) -> None:
    other = bit_exact_math.normal_quantile(1 - p)
    assert bit_exact_math.normal_quantile(1 - (1 - p)) == pytest.approx(
        -other, rel=1e-12, abs=1e-15
    )


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_chances_that_are_none(p: float) -> None:
    with pytest.raises(ValueError, match="a chance of"):
        bit_exact_math.normal_quantile(p)
