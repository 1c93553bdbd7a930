"""Reads and writes quantities with units: rates, durations, sizes, ratios. Pure.

A number without a unit is refused. `80` in a scenario could mean Mbit/s, ms or MB, and a wrong guess
would give a wrong figure, not an error.
Values are kept in base units: bit/s (int), seconds (float), bytes (int), a ratio
(float, 1 = all). Decimal prefixes are powers of ten and `Ki`, `Mi`, `Gi` powers of 1024
(IEC 80000-13); `mbit` and its kin are accepted as tc(8) writes them. What `format_x`
writes, `parse_x` reads back as exactly the same value.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from linklab.core.errors import LinklabError

RATE_FORM = "a rate such as '80 Mbit/s'"
DURATION_FORM = "a duration such as '10 ms'"
SIZE_FORM = "a size such as '250 MB'"
RATIO_FORM = "a ratio such as '0.3 %'"

_RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_DURATIONS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
_SIZES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

# tc(8): "bit, kbit, mbit, gbit" are bits per second; case does not matter there.
_RATE_UNITS = {unit.lower(): Fraction(scale) for unit, scale in _RATES.items()}
_RATE_UNITS |= {unit.removesuffix("/s"): scale for unit, scale in list(_RATE_UNITS.items())}
_DURATION_UNITS = {**_DURATIONS, "µs": _DURATIONS["us"], "μs": _DURATIONS["us"]}
_SIZE_UNITS = {**{unit: Fraction(scale) for unit, scale in _SIZES.items()}, "KB": Fraction(1000)}
_RATIO_UNITS = {"%": Fraction(1, 100)}

_NUMBER = r"[0-9]{1,40}(?:\.[0-9]{1,400})?|\.[0-9]{1,400}"
_QUANTITY = re.compile(
    rf"\s*([+-]?)({_NUMBER}|\.?inf|\.?nan)\s*(\S*)\s*",
    re.IGNORECASE | re.ASCII,
)


_LONGEST = 500
"""The most characters of a quantity: the digits of `_NUMBER`, a unit, and a margin."""


class UnitError(LinklabError, ValueError):
    """The quantity cannot be read. The message says what is wrong and what is allowed."""


def kind_of(unit: str) -> str | None:
    """Returns the kind of quantity that a unit measures, for errors; None if it is unknown."""
    if unit.lower() in _RATE_UNITS:
        return "a rate"
    if unit in _DURATION_UNITS:
        return "a duration"
    if unit in _SIZE_UNITS:
        return "a size"
    if unit in _RATIO_UNITS:
        return "a ratio"
    return None


def _parse(text: str, units: dict[str, Fraction], form: str, *, fold: bool = False) -> Fraction:
    """Returns the exact value of `text` in the base unit of `units`. Raises UnitError with `form`."""

    def refuse(problem: str) -> UnitError:
        return UnitError(f"{text!r} {problem}; allowed: {form}")

    if len(text) > _LONGEST:
        raise UnitError(f"{text[:40] + '…'!r} is too long; allowed: {form}")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise refuse("is not a number with a unit")
    sign, number, unit = match.groups()
    if number.lower().strip(".") in ("inf", "nan"):
        raise refuse("is not finite")
    if not unit:
        raise refuse("has no unit")
    scale = units.get(unit.lower() if fold else unit)
    if scale is None:
        kind = kind_of(unit)
        raise refuse(f"is {kind}" if kind else f"has the unknown unit {unit!r}")
    value = Fraction(number) * scale
    if sign == "-" and value:
        raise refuse("is negative")
    return value


def _whole(value: Fraction, text: str, unit: str, form: str) -> int:
    if value.denominator != 1:
        raise UnitError(f"{text!r} is not a whole number of {unit}; allowed: {form}")
    return int(value)


def parse_rate(text: str) -> int:
    """Reads a rate in bit/s: '80 Mbit/s', '10 kbit/s', '80mbit'. Raises UnitError."""
    return _whole(_parse(text, _RATE_UNITS, RATE_FORM, fold=True), text, "bit/s", RATE_FORM)


def parse_duration(text: str) -> float:
    """Reads a duration in seconds: '10 ms', '2 s', '100 us', '1.5 min'. Raises UnitError."""
    return float(_parse(text, _DURATION_UNITS, DURATION_FORM))


def parse_size(text: str) -> int:
    """Reads a size in bytes: '250 MB', '500 kB', '1 MiB', '4096 B'. Raises UnitError."""
    return _whole(_parse(text, _SIZE_UNITS, SIZE_FORM), text, "bytes", SIZE_FORM)


def parse_ratio(text: str) -> float:
    """Reads a ratio: '0.3 %' is 0.003. It may exceed 100 %. Raises UnitError."""
    return float(_parse(text, _RATIO_UNITS, RATIO_FORM))


def parse_number(text: str) -> float:
    """Reads a number without a unit: '2' or '0.05'. Raises UnitError."""
    if not re.fullmatch(_NUMBER, text, re.ASCII):
        raise UnitError(f"{text!r} is not a number; allowed: a number such as '2'")
    return float(text)


def parse_measure(text: str, unit: str) -> float:
    """Reads a number with a unit without prefixes: '-60 dBm', '20 MHz'. Raises UnitError."""
    found = re.fullmatch(rf"\s*([+-]?)({_NUMBER})\s*{re.escape(unit)}\s*", text, re.ASCII)
    if not found:
        raise UnitError(f"{text!r} is no measure in {unit}; allowed: a number such as '5 {unit}'")
    return float(found[1] + found[2])


def format_measure(value: float, unit: str) -> str:
    """Writes a number with its unit. `parse_measure` reads back the same value."""
    return f"{'-' if value < 0 else ''}{_plain(_exact(abs(value)))} {unit}"


def format_number(value: float) -> str:
    """Writes a number without a unit. `parse_number` reads back the same value."""
    return _plain(_exact(value))


def _plain(value: Decimal) -> str:
    """Writes a decimal without exponent and without trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exact(value: float) -> Decimal:
    """Returns the shortest decimal that reads back as `value`. Raises ValueError unless ≥ 0."""
    if not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} is not a finite number of at least 0")
    return Decimal(repr(float(value)))


def _whole_and_valid(value: int) -> int:
    if value < 0:
        raise ValueError(f"{value} is negative")
    return value


def format_rate(bps: int) -> str:
    """Writes 80_000_000 as '80 Mbit/s', with the largest unit that gives a number of at least 1."""
    _whole_and_valid(bps)
    unit, scale = max(
        ((u, s) for u, s in _RATES.items() if s <= max(bps, 1)), key=lambda pair: pair[1]
    )
    exponent = len(str(scale)) - 1
    return f"{_plain(Decimal((0, _digits(bps), -exponent)))} {unit}"


def format_duration(seconds: float) -> str:
    """Writes 0.01 as '10 ms'. It never uses minutes, whose decimals need not be exact."""
    value = _exact(seconds)
    if value == 0:
        return "0 s"
    for unit, exponent in (("s", 0), ("ms", 3), ("us", 6)):
        if value.adjusted() + exponent >= 0:
            return f"{_plain(_shifted(value, exponent))} {unit}"
    return f"{_plain(_shifted(value, 9))} ns"


def format_size(size: int) -> str:
    """Writes a size such as '250 MB' or '16 MiB': the shorter of decimal and binary form."""
    _whole_and_valid(size)
    forms = []
    for unit, scale in _SIZES.items():
        if unit in ("B", "kB", "MB", "GB"):
            exponent = len(str(scale)) - 1
            if scale <= max(size, 1):
                forms.append(f"{_plain(Decimal((0, _digits(size), -exponent)))} {unit}")
        elif size and size % scale == 0:
            forms.append(f"{size // scale} {unit}")
    return min(forms, key=len)


def format_ratio(ratio: float) -> str:
    """Writes 0.003 as '0.3 %'."""
    return f"{_plain(_shifted(_exact(ratio), 2))} %"


def percent(ratio: float, form: str = ".0") -> str:
    """Writes 0.5 as '50 %', rounded as `form` says: '50.0 %' for `.1`, '+50.0 %' for `+.1`."""
    return f"{ratio:{form}%}".removesuffix("%") + " %"


def _digits(value: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(value))


def _shifted(value: Decimal, exponent: int) -> Decimal:
    """Returns value · 10^exponent without the rounding of a decimal context."""
    sign, digits, scale = value.as_tuple()
    assert isinstance(scale, int)
    return Decimal((sign, digits, scale + exponent))
