"""Defines values with their limits: how each is read, written, and described. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linklab.core import units
from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import MAX_QUEUE_BYTES
from linklab.schema.mapping import Mapping, boolean, integer, one_of, within


@dataclass(frozen=True, slots=True)
class Quantity:
    """Defines a single value. `parse` reads it (ValueError says what is allowed), `form` writes it,
    `allowed` describes the allowed values."""

    parse: Callable[[str], Any]
    form: Callable[[Any], Any]
    allowed: str

    def read(self, mapping: Mapping, key: str) -> Any:
        """Reads the value of a present key. Raises ScenarioError with its line."""
        return mapping.get(key, self.parse)

    def write(self, value: Any) -> Any:
        """Returns the value as the file has it."""
        return self.form(value)


def duration(low_s: float, high_s: float) -> Quantity:
    """Returns a duration between two limits, both allowed."""
    allowed = f"{units.format_duration(low_s)} to {units.format_duration(high_s)}"
    return _within(units.parse_duration, low_s, high_s, allowed, units.format_duration)


def ratio(low: float = 0.0, high: float = 1.0, example: str = "") -> Quantity:
    """Returns a ratio between two limits, both allowed."""
    allowed = f"{units.format_ratio(low)} to {units.format_ratio(high)}"
    if example:
        allowed += f", such as {example!r}"
    return _within(units.parse_ratio, low, high, allowed, units.format_ratio)


def size(low: int, high: int, allowed: str = "") -> Quantity:
    """Returns a size in bytes between two limits, both allowed."""
    allowed = allowed or f"{units.format_size(low)} to {units.format_size(high)}"
    return _within(units.parse_size, low, high, allowed, units.format_size)


def rate(low_bps: int, high_bps: int) -> Quantity:
    """Returns a rate between two limits, both allowed."""
    allowed = f"{units.format_rate(low_bps)} to {units.format_rate(high_bps)}"
    return _within(units.parse_rate, low_bps, high_bps, allowed, units.format_rate)


def count(low: int, high: int) -> Quantity:
    """Returns a whole number between two limits, both allowed."""
    return _within(integer, low, high, f"{low} to {high}", str)


def number(low: float, high: float, unit: str = "") -> Quantity:
    """Returns a number without a unit between two limits, both allowed. `unit` says what is
    counted."""
    allowed = f"{low:g} to {high:g} {unit}".rstrip()
    return _within(units.parse_number, low, high, allowed, units.format_number)


def measure(unit: str, low: float, high: float) -> Quantity:
    """Returns a number in a unit without prefixes between two limits, both allowed."""
    return _within(
        lambda text: units.parse_measure(text, unit),
        low,
        high,
        f"{units.format_measure(low, unit)} to {units.format_measure(high, unit)}",
        lambda value: units.format_measure(value, unit),
    )


def choice(*allowed: str) -> Quantity:
    """Returns a choice of words."""
    return Quantity(one_of(*allowed), str, ", ".join(allowed))


def one_named(names: dict[Any, str]) -> Quantity:
    """Returns a choice of values that the file calls by name."""
    values = {name: value for value, name in names.items()}
    word = one_of(*values)
    return Quantity(lambda text: values[word(text)], lambda value: names[value], ", ".join(values))


def pattern(form: str, what: str, allowed: str) -> Quantity:
    """Returns a word that matches the regular expression `form`. Errors say "… is no WHAT"."""

    def parse(text: str) -> str:
        if not re.fullmatch(form, text):
            raise ValueError(f"{text!r} is no {what}; allowed: {allowed}")
        return text

    return Quantity(parse, str, allowed)


def _words(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; needed: a few words")
    return text.strip()


BOOLEAN = Quantity(boolean, bool, "true, false")

TEXT = Quantity(str.strip, str, "any text")

WORDS = Quantity(_words, str, "a few words")


def _within(
    parse: Callable[[str], Any], low: Any, high: Any, allowed: str, form: Callable[[Any], Any]
) -> Quantity:
    return Quantity(within(parse, low, high, allowed), form, allowed)


QUEUE = size(
    FRAME_BYTES,
    MAX_QUEUE_BYTES,
    f"{FRAME_BYTES} B (one packet) to {units.format_size(MAX_QUEUE_BYTES)}",
)
"""The size of a queue."""
