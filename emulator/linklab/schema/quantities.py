"""The settings of link models in YAML: one table per model, read and written by the same rows.

A row says how a key of the file and an attribute of the settings belong together, and what is
allowed. Keys that are left out take the settings' defaults. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from linklab.core import units
from linklab.schema.mapping import Keys, Mapping, integer, one_of, within

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Quantity:
    """How a value is read (ValueError saying what is allowed) and written."""

    parse: Callable[[str], Any]
    form: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A key of the file, the attribute it sets, and how; `unset` is what is not written."""

    key: str
    attribute: str
    quantity: Quantity
    unset: Any = ...


def duration(low_s: float, high_s: float) -> Quantity:
    """A time between two, both allowed."""
    allowed = f"{units.format_duration(low_s)} to {units.format_duration(high_s)}"
    return Quantity(within(units.parse_duration, low_s, high_s, allowed), units.format_duration)


def ratio(low: float = 0.0, high: float = 1.0) -> Quantity:
    """A share between two, both allowed."""
    allowed = f"{units.format_ratio(low)} to {units.format_ratio(high)}"
    return Quantity(within(units.parse_ratio, low, high, allowed), units.format_ratio)


def size(low: int, high: int) -> Quantity:
    """Bytes between two numbers of them, both allowed."""
    allowed = f"{units.format_size(low)} to {units.format_size(high)}"
    return Quantity(within(units.parse_size, low, high, allowed), units.format_size)


def rate(low_bps: int, high_bps: int) -> Quantity:
    """A rate between two, both allowed."""
    allowed = f"{units.format_rate(low_bps)} to {units.format_rate(high_bps)}"
    return Quantity(within(units.parse_rate, low_bps, high_bps, allowed), units.format_rate)


def count(low: int, high: int) -> Quantity:
    """A whole number between two, both allowed."""
    return Quantity(within(integer, low, high, f"{low} to {high}"), str)


def number(low: float, high: float) -> Quantity:
    """A number without a unit between two, both allowed."""
    allowed = f"{low:g} to {high:g}"
    return Quantity(within(units.parse_number, low, high, allowed), units.format_number)


def measure(unit: str, low: float, high: float) -> Quantity:
    """A number in a unit without prefixes between two, both allowed."""
    return Quantity(
        within(
            lambda text: units.parse_measure(text, unit), low, high,
            f"{units.format_measure(low, unit)} to {units.format_measure(high, unit)}",
        ),
        lambda value: units.format_measure(value, unit),
    )  # fmt: skip


def choice(*allowed: str) -> Quantity:
    """One of some words."""
    return Quantity(one_of(*allowed), str)


def one_named(names: dict[Any, str]) -> Quantity:
    """One of some values that the file calls by name."""
    values = {name: value for value, name in names.items()}
    word = one_of(*values)
    return Quantity(lambda text: values[word(text)], lambda value: names[value])


def keys(rows: Sequence[Row], needed: Sequence[str] = (), more: Sequence[str] = ()) -> Keys:
    """The keys of a table's mapping, and `more` optional ones that are no rows of it."""
    optional = tuple(row.key for row in rows if row.key not in needed)
    return Keys(tuple(needed), (*optional, *more))


def read(mapping: Mapping, settings: Callable[..., S], rows: Sequence[Row], **more: Any) -> S:
    """The settings in a mapping; `more` are attributes that its rows do not set."""
    given = {
        row.attribute: mapping.get(row.key, row.quantity.parse)
        for row in rows
        if mapping.has(row.key)
    }
    return settings(**given, **more)


def write(settings: object, rows: Sequence[Row]) -> dict[str, Any]:
    """The mapping of settings, every value written out; what is unset is left out."""
    values = ((row, getattr(settings, row.attribute)) for row in rows)
    return {row.key: row.quantity.form(value) for row, value in values if value is not row.unset}
