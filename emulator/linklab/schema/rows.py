"""Defines tables of keys. A row defines how one key is read, written and documented. Pure.

A table stands for a mapping of a file and its settings class. A new key is a row and an attribute
beside each other. Checks of several keys are functions of the table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from linklab.schema.mapping import Keys, Mapping

S = TypeVar("S")

Mappings = dict[str, Any]
"""The written form: keys and values, mappings of them, lists."""


class Value(Protocol):
    """Reads and writes the value of a key: a quantity, a table, or a list of tables."""

    def read(self, mapping: Mapping, key: str) -> Any:
        """Reads the value of a present key. Raises ScenarioError with its line."""
        ...

    def write(self, value: Any) -> Any:
        """Returns the value as the file has it."""
        ...

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """Defines a key of the file, and the attribute of the settings that it sets.

    `about` is for authors of files. `unset` is the value that is not written. `default` describes a
    default other than the attribute's. Then the table's reader sets it.
    """

    key: str
    attribute: str
    value: Value
    about: str = ""
    needed: bool = False
    unset: Any = ...
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Inner:
    """Holds an attribute whose table's keys stand in the same mapping."""

    attribute: str
    table: Table[Any]


@dataclass(frozen=True, slots=True)
class Table(Generic[S]):
    """Holds the rows of a mapping, in the order in which they are written and listed.

    `check` refuses invalid combinations of keys, by `Mapping.fail`.
    """

    settings: type[S]
    rows: tuple[Row | Inner, ...]
    check: Callable[[Mapping, S], None] = lambda mapping, settings: None
    about: str = ""

    @property
    def flat(self) -> tuple[Row, ...]:
        """Returns all rows, with those of inner tables in their places."""
        return tuple(row for _, row in self._owned())

    @property
    def keys(self) -> Keys:
        """Returns the mapping's keys."""
        return keys(self.flat)

    @property
    def allowed(self) -> str:
        return "a mapping, see below"

    def read(self, mapping: Mapping, key: str) -> S:
        """Reads the settings in the mapping of `key`."""
        return self.of(mapping.sub(key, self.keys))

    def of(self, mapping: Mapping, **more: Any) -> S:
        """Reads the settings in a mapping. The attributes in `more` are given, so their keys are
        not read."""
        settings = self.settings(**self.values(mapping, more), **more)
        self.check(mapping, settings)
        return settings

    def values(self, mapping: Mapping, without: Collection[str] = ()) -> dict[str, Any]:
        """Reads the attributes that the mapping sets, except those in `without`."""
        found: dict[str, Any] = {}
        for row in self.rows:
            if row.attribute in without:
                continue
            if isinstance(row, Inner):
                found[row.attribute] = row.table.of(mapping)
            elif mapping.has(row.key):
                found[row.attribute] = row.value.read(mapping, row.key)
        return found

    def write(self, settings: S, without: Collection[str] = ()) -> Mappings:
        """Returns the mapping of settings with every value. Values equal to `unset`, and the keys
        `without`, are left out."""
        written: Mappings = {}
        for row in self.rows:
            value = getattr(settings, row.attribute)
            if isinstance(row, Inner):
                written |= row.table.write(value)
            elif value != row.unset and row.key not in without:
                written[row.key] = row.value.write(value)
        return written

    def default(self, row: Row) -> str:
        """Describes the default of a key."""
        if row.default is not None or row.needed:
            return row.default or ""
        owner = next(owner for owner, one in self._owned() if one is row)
        fields = {field.name: field for field in dataclasses.fields(owner)}
        value = fields[row.attribute].default
        if value is dataclasses.MISSING or value == row.unset:
            return ""
        return _shown(row.value.write(value))

    def _owned(self) -> Iterator[tuple[type[Any], Row]]:
        for row in self.rows:
            if isinstance(row, Inner):
                yield from row.table._owned()
            else:
                yield self.settings, row


AnyTable = Table[Any]


@dataclass(frozen=True, slots=True)
class Listed(Generic[S]):
    """Defines a list of mappings. `check` gets the mapping that holds the list, and each entry as
    mapping and as settings."""

    table: Table[S]
    check: Callable[[Mapping, list[tuple[Mapping, S]]], None] = lambda mapping, items: None

    @property
    def allowed(self) -> str:
        return "a list of mappings, see below"

    def read(self, mapping: Mapping, key: str) -> tuple[S, ...]:
        """Reads the settings of all entries."""
        found = [(item, self.table.of(item)) for item in mapping.items(key, self.table.keys)]
        self.check(mapping, found)
        return tuple(settings for _, settings in found)

    def write(self, value: tuple[S, ...]) -> list[Mappings]:
        """Returns all entries as the file has them."""
        return [self.table.write(settings) for settings in value]


def keys(rows: tuple[Row, ...]) -> Keys:
    """Returns the keys of rows, needed ones first."""
    needed = tuple(row.key for row in rows if row.needed)
    return Keys(needed, tuple(row.key for row in rows if not row.needed))


def _shown(written: Any) -> str:
    if isinstance(written, bool):
        return "true" if written else "false"
    if isinstance(written, dict):
        inside = ", ".join(f"{key}: {_shown(value)}" for key, value in written.items())
        return f"{{{inside}}}"
    if isinstance(written, list):
        return f"[{', '.join(map(_shown, written))}]"
    return str(written)
