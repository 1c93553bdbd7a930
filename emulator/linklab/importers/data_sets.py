"""Reads published data sets, whose recordings are tables. data_sets.yaml describes their columns.

A set of the usual form needs no code, only an entry in that file. A line of a table is an interval, or
a probe. If a file tells no zone, only differences of its times count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

import msgspec

from linklab.importers import probes
from linklab.importers.cells import FRAMES_PER_PAYLOAD, Cells
from linklab.importers.format import Format, Options
from linklab.importers.intervals import IntervalSamples, MeasuredLine
from linklab.importers.probes import Probe
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.traces.lines import Lines
from linklab.traces.tables import RecordedTable, names_of
from linklab.traces.times import TimeColumn
from linklab.traces.trace import TraceFile, TraceSample

FILE: Final = Path(__file__).with_name("data_sets.yaml")

_What = Literal["down", "up", "rtt", "loss"]
_SOME: Final = msgspec.Meta(min_length=1)


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of the file. Unknown keys are refused."""


class ValueColumn(_Row, frozen=True):
    """A column with a value.

    Attributes:
        needed: a table without it is refused. So is one without `TableLayout.main`.
        on_demand: it is read only if it is named to be kept.
        of_each: there is a column for each value of this name. `column` is how they end, and
            `--only NAME=VALUE` chooses one.
    """

    column: str
    unit: Literal["bit/s", "kbit/s", "Mbit/s", "ms", "%"]
    needed: bool = False
    on_demand: bool = False
    of_each: str = ""

    def is_in(self, name: str) -> bool:
        """Tells whether a table's column of this name is meant."""
        return name.endswith(self.column) if self.of_each else name == self.column


class TableLayout(_Row, frozen=True):
    """The columns of a table, which has a line per interval, or per probe.

    Attributes:
        time: columns with the beginning. The first one that the file has counts.
        values: the columns with values. The first one tells a table from others.
        end: the column with the end, if the file has it.
        leaves_silence_out: more than 10 s without a line are left out; else the line before holds.
        beside: further columns by which the table is recognised.
        of_payload: rates count payload of TCP.
        of_probes: each line is a probe. `lost` may say that it was lost; `uplink` and `downlink` are
            then negative for the way that lost it. What the uplink lost does not count.
    """

    time: Annotated[tuple[str, ...], _SOME]
    values: Annotated[dict[_What, ValueColumn], _SOME]
    end: str = ""
    leaves_silence_out: bool = False
    beside: tuple[str, ...] = ()
    of_payload: bool = False
    of_probes: bool = False

    @property
    def main(self) -> ValueColumn:
        """The column without which a table is another one."""
        return next(iter(self.values.values()))

    @property
    def needed(self) -> list[str]:
        """The columns without which a table is refused."""
        found = [one.column for one in self.values.values() if one.needed or one is self.main]
        return [self.time[0], *found]

    @property
    def optional(self) -> list[str]:
        """The columns that a table may have."""
        found = [one.column for one in self.values.values()]
        ways = ("lost", "uplink", "downlink") if self.of_probes else ()
        return [*found, *filter(None, [self.end]), *ways]

    def missing(self, names: list[str]) -> int:
        """Returns how many of the columns by which the table is recognised are not there."""
        return (
            (not set(self.time) & set(names))
            + (not any(self.main.is_in(name) for name in names))
            + len(set(self.beside) - set(names))
        )


class DataSet(_Row, frozen=True):
    """A data set.

    Attributes:
        looks: describes a file for people.
        keeps, takes: as in `Format`.
        apart: columns that tell recordings apart; "all" means those of no time or value.
        delays: the values of `--only` that choose the delays of a table that also has rates.
    """

    looks: str
    tables: Annotated[tuple[TableLayout, ...], _SOME]
    keeps: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    apart: tuple[str, ...] | Literal["all"] = ()
    delays: dict[str, str] = {}

    def table_of(self, names: list[str], only: Mapping[str, str]) -> TableLayout:
        """Returns the table that has the most of its columns among `names`."""
        tables = self.tables
        if any(
            only.get(key, "").casefold() == value.casefold() for key, value in self.delays.items()
        ):
            tables = tuple(one for one in tables if "down" not in one.values)
        return min(tables, key=lambda one: one.missing(names))

    def apart_in(self, names: list[str]) -> list[str]:
        """Lists the columns among `names` that tell recordings apart."""
        if self.apart != "all":
            return [name for name in self.apart if name in names]
        times = {name for one in self.tables for name in one.time}
        values = [column for one in self.tables for column in one.values.values()]
        return [
            name
            for name in names
            if name not in times and not any(column.is_in(name) for column in values)
        ]


def parse(text: str, shown: str) -> dict[str, DataSet]:
    """Reads data sets from YAML. Raises ScenarioError with the file and the key."""
    try:
        found = document.plain(text, shown, document.LIMITS)
        return msgspec.convert(found, dict[str, DataSet], strict=False)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{shown}: {error}; data_sets.py lists what is allowed") from error


def _read(one: DataSet, file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    only = dict(options.only or {})
    table = RecordedTable.of(Lines(file, name), one.tables[0].needed, [])
    chosen = one.table_of(table.names, only)
    chosen = msgspec.structs.replace(
        chosen,
        time=tuple(time for time in chosen.time if time in table.names) or chosen.time,
        values={
            key: msgspec.structs.replace(column, column=_of_one(column, table, only))
            for key, column in chosen.values.items()
            if not column.on_demand or key in (options.keep or ())
        },
    )
    apart = one.apart_in(table.names)
    cells = Cells(table, chosen.needed, chosen.optional, apart, only)
    return _Reading(chosen, table, cells).trace(options.bin_s)


def _of_one(column: ValueColumn, table: RecordedTable, only: dict[str, str]) -> str:
    """Returns the name of the column, of several the chosen one. Takes the choice out of `only`."""
    names = {
        name.removesuffix(column.column): name
        for name in table.names
        if column.of_each and column.is_in(name)
    }
    if not names:
        return column.column
    chosen = only.pop(column.of_each, "") or (next(iter(names)) if len(names) == 1 else "")
    fitting = [name for value, name in names.items() if value.casefold() == chosen.casefold()]
    if not fitting:
        needed = ", ".join(f"--only {column.of_each}={value}" for value in names)
        table.lines.fail(f"each {column.of_each} has a column; needed: one of {needed}")
    return fitting[0]


class _Reading:
    """One pass over the lines of a recording."""

    def __init__(self, of: TableLayout, table: RecordedTable, cells: Cells) -> None:
        self._of = of
        self._table = table
        self._cells = cells
        self._time = of.time[0]
        self._begins, self._ends = TimeColumn(table, self._time), TimeColumn(table, of.end)
        self._has_rates = "down" in of.values
        self._frames = FRAMES_PER_PAYLOAD if of.of_payload else 1.0

    def trace(self, bin_s: float | None) -> TraceFile:
        of, table = self._of, self._table
        if of.of_probes:
            found = self._cells.rows(self._probe)
            return probes.trace(found, bin_s, table.lines.fail, table.notes)
        columns = {str(key) for key, one in of.values.items() if self._cells.has(one.column)}
        told = f"payload x {FRAMES_PER_PAYLOAD:.4f} for whole frames"
        return TraceFile(
            self._samples(),
            frozenset(columns - {"down"}),
            [told] if of.of_payload else [],
            table.notes,
            has_rates=self._has_rates,
        )

    def _samples(self) -> Iterator[TraceSample]:
        of = self._of
        rate = of.values["down"].column if self._has_rates else None
        intervals = IntervalSamples(
            self._table, self._time, rate, leaves_silence_out=of.leaves_silence_out
        )
        yield from intervals.of(self._cells.rows(self._line))

    def _probe(self) -> Probe | None:
        cells = self._cells
        t_ns = self._begins.ns(cells.text(self._time))
        if self._is_negative("uplink"):
            return None
        is_lost = cells.has("lost") and cells.text("lost").casefold() in ("true", "1", "1.0")
        is_lost |= self._is_negative("downlink") or self._is_negative(self._of.main.column)
        return Probe(t_ns, None if is_lost else self._value("rtt"))

    def _is_negative(self, column: str) -> bool:
        return self._cells.has(column) and self._cells.text(column).startswith("-")

    def _line(self) -> MeasuredLine:
        of, cells = self._of, self._cells
        text = cells.text(self._time)
        t_ns = self._begins.ns(text)
        end_ns = self._ends.ns(cells.text(of.end)) if of.end and cells.has(of.end) else None
        down_bps, up_bps = self._rate_bps("down"), self._rate_bps("up")
        return MeasuredLine(
            text, t_ns, end_ns, down_bps, up_bps, self._value("rtt"), self._value("loss")
        )

    def _rate_bps(self, key: _What) -> int | None:
        rate = self._value(key, self._frames)
        return None if rate is None else round(rate)

    def _value(self, key: _What, frames: float = 1.0) -> float | None:
        one = self._of.values.get(key)
        return None if one is None else self._cells.value(one.column, one.unit, frames)


def _begins(one: DataSet, line: str) -> bool:
    names = names_of(line)
    return not one.table_of(names, {}).missing(names)


FORMATS: Final = tuple(
    Format(
        name=name,
        looks=one.looks,
        begins=partial(_begins, one),
        read=partial(_read, one),
        keeps=one.keeps,
        takes=one.takes,
    )
    for name, one in parse(FILE.read_text("utf-8"), FILE.name).items()
)
