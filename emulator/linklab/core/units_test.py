import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linklab
from linklab.core import units
from linklab.core.units import UnitError

PACKAGE = Path(linklab.__file__).parent


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate, "80 Mbit/s", 80_000_000),
        (units.parse_rate, "80mbit", 80_000_000),
        (units.parse_rate, "80 Mbit", 80_000_000),
        (units.parse_rate, "  1bit/s ", 1),
        (units.parse_rate, "-0 bit/s", 0),
        (units.parse_rate, ".5 kbit/s", 500),
        (units.parse_duration, "100 us", 1e-4),
        (units.parse_duration, "100 µs", 1e-4),
        (units.parse_duration, "1.5 min", 90.0),
        (units.parse_duration, "1 h", 3600.0),
        (units.parse_duration, "7ns", 7e-9),
        (units.parse_size, "500 KB", 500_000),
        (units.parse_size, "1 MiB", 1 << 20),
        (units.parse_size, "1 KiB", 1024),
        (units.parse_size, "1.5 kB", 1500),
        (units.parse_size, "2 GB", 2_000_000_000),
        (units.parse_ratio, "0.3 %", 0.003),
        (units.parse_ratio, "100%", 1.0),
    ],
)
def test_quantities(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("80", "has no unit"),
        ("", "is not a number with a unit"),
        ("80 Mbit/s please", "is not a number with a unit"),
        ("80 ms", "is a duration"),
        ("80 MB", "is a size"),
        ("80 %", "is a ratio"),
        ("80 MB/s", "has the unknown unit 'MB/s'"),
        ("-1 Mbit/s", "is negative"),
        ("nan Mbit/s", "is not finite"),
        ("inf", "is not finite"),
        (".inf Mbit/s", "is not finite"),
        ("0.5 bit/s", "is not a whole number of bit/s"),
        ("٣ Mbit/s", "is not a number with a unit"),
        ("1e3 Mbit/s", "is not a number with a unit"),
    ],
)
def test_a_refused_rate_names_the_problem_and_the_form(text: str, problem: str) -> None:
    with pytest.raises(UnitError) as caught:
        units.parse_rate(text)
    message = str(caught.value)
    assert problem in message
    assert message.endswith("allowed: a rate such as '80 Mbit/s'")


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_duration, "2"),
        (units.parse_duration, "-2 s"),
        (units.parse_duration, "9" * 400 + " s"),
        (units.parse_size, "5"),
        (units.parse_size, "0.5 B"),
        (units.parse_ratio, "0.003"),
        (units.parse_ratio, "-1 %"),
    ],
)
def test_other_refusals(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(UnitError, match="allowed: a "):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.format_rate(7_500_000), "7.5 Mbit/s"),
        (units.format_rate(0), "0 bit/s"),
        (units.format_duration(0.0), "0 s"),
        (units.format_duration(90.0), "90 s"),
        (units.format_duration(1e-4), "100 us"),
        (units.format_size(250_000_000), "250 MB"),
        (units.format_size(16 << 20), "16 MiB"),
        (units.format_size(0), "0 B"),
        (units.format_size(1514), "1514 B"),
        (units.format_ratio(0.003), "0.3 %"),
        (units.percent(-0.0004, ".1"), "-0.0 %"),
        (units.percent(1, "+.1"), "+100.0 %"),
    ],
)
def test_formats(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_formatting_refuses_what_parsing_refuses(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        units.format_duration(value)


@given(st.integers(0, 10**13))
def test_rate_round_trip(bps: int) -> None:
    assert units.parse_rate(units.format_rate(bps)) == bps


@given(st.integers(0, 1 << 50))
def test_size_round_trip(size: int) -> None:
    assert units.parse_size(units.format_size(size)) == size


@given(st.floats(0, 1e9, allow_nan=False))
def test_duration_round_trip(seconds: float) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@given(st.floats(0, 1, allow_nan=False))
def test_ratio_round_trip(ratio: float) -> None:
    assert units.parse_ratio(units.format_ratio(ratio)) == ratio


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (units.parse_rate, units.parse_duration, units.parse_size, units.parse_ratio):
        try:
            assert parse(text) >= 0
        except UnitError as error:
            assert "allowed: a " in str(error)


def test_percent_writes_all_percentages() -> None:
    """Python's own form, as in 50%, lacks the space."""
    own = re.compile(r"\{[^{}\n]*:[^{}\s]*%\}")
    modules = [one for one in PACKAGE.rglob("*.py") if not one.name.endswith("_test.py")]
    assert len(modules) > 100
    assert not [one.name for one in modules if own.search(one.read_text())]
