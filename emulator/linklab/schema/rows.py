"""Tables of keys: a row says all about one key, which is read, written and documented from it.

A table is a mapping of a file and the settings class that it stands for. Whoever adds a key adds
a row and an attribute beside each other. Checks that need several keys are functions of the table.
Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from linklab.schema.mapping import Keys, Mapping

S = TypeVar("S")

Mappings = dict[str, Any]
"""What is written: keys and values, mappings of them, lists."""


class Value(Protocol):
    """What stands behind a key: a quantity, a table, or a list of tables."""

    def read(self, mapping: Mapping, key: str) -> Any:
        """The value of a key that is there. Raises ScenarioError with its line."""
        ...

    def write(self, value: Any) -> Any:
        """The value as the file has it."""
        ...

    @property
    def allowed(self) -> str:
        """What may stand there, in words."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """A key of the file, the attribute of the settings that it sets, and how.

    `about` is for who writes a file. `unset` is the value that is not written. A default other
    than the attribute's own is said in words by `default`; it is the table's reader who sets it.
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
    """An attribute whose own table's keys stand in the same mapping."""

    attribute: str
    table: Table[Any]


def _all_is_well(mapping: Mapping, settings: Any) -> None:
    """No key depends on another one."""


@dataclass(frozen=True, slots=True)
class Table(Generic[S]):
    """The rows of a mapping, in the order in which they are written and listed.

    `check` refuses what its keys together do not allow, by `Mapping.fail`.
    """

    settings: type[S]
    rows: tuple[Row | Inner, ...]
    check: Callable[[Mapping, S], None] = _all_is_well
    about: str = ""

    @property
    def flat(self) -> tuple[Row, ...]:
        """All rows, those of inner tables in their places."""
        return tuple(row for _, row in self._owned())

    @property
    def keys(self) -> Keys:
        """The mapping's keys."""
        return keys(self.flat)

    @property
    def allowed(self) -> str:
        return "a mapping, see below"

    def read(self, mapping: Mapping, key: str) -> S:
        """The settings in the mapping that stands behind `key`."""
        return self.of(mapping.sub(key, self.keys))

    def of(self, mapping: Mapping, **more: Any) -> S:
        """The settings in a mapping. The attributes `more` are given, and their keys not read."""
        settings = self.settings(**self.values(mapping, more), **more)
        self.check(mapping, settings)
        return settings

    def values(self, mapping: Mapping, without: Collection[str] = ()) -> dict[str, Any]:
        """The attributes that the mapping sets, but for those `without`."""
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
        """The mapping of settings, every value written out; what is unset is left out, and so
        are the keys `without`."""
        written: Mappings = {}
        for row in self.rows:
            value = getattr(settings, row.attribute)
            if isinstance(row, Inner):
                written |= row.table.write(value)
            elif value != row.unset and row.key not in without:
                written[row.key] = row.value.write(value)
        return written

    def default(self, row: Row) -> str:
        """What holds where a key is left out, in words."""
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


def _nothing_between(mapping: Mapping, items: list[tuple[Mapping, Any]]) -> None:
    """No entry of the list depends on another one."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[S]):
    """A list of mappings. `check` gets the mapping that holds the list, and every entry of it as
    it stands there and as it was read."""

    table: Table[S]
    check: Callable[[Mapping, list[tuple[Mapping, S]]], None] = _nothing_between

    @property
    def allowed(self) -> str:
        return "a list of mappings, see below"

    def read(self, mapping: Mapping, key: str) -> tuple[S, ...]:
        """The settings of all entries."""
        found = [(item, self.table.of(item)) for item in mapping.items(key, self.table.keys)]
        self.check(mapping, found)
        return tuple(settings for _, settings in found)

    def write(self, value: tuple[S, ...]) -> list[Mappings]:
        """All entries as the file has them."""
        return [self.table.write(settings) for settings in value]


def keys(rows: tuple[Row, ...]) -> Keys:
    """The keys of rows: first those that are needed."""
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
