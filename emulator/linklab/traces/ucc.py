"""Reads UCC's 4G and 5G traces, which an Android phone logged once per second.

They are CSV files of G-NetTrack Pro (Raca et al., ACM MMSys 2018 and 2020). The columns are
`Timestamp` as YYYY.MM.DD_HH.MM.SS, `DL_bitrate` and `UL_bitrate` in kbit/s, and in the 5G set
`PINGAVG` in ms. `-` is a missing value.

The rates are those of the phone's applications. So they show the link's capacity only during a
download. In `State` I the phone was idle.

In the 5G set the logger's rate falls in each second in which it also pings. A note says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import BinaryIO, Final

from linklab.traces import intervals
from linklab.traces.cells import Cells
from linklab.traces.format import Format, Options
from linklab.traces.intervals import MeasuredLine, Spacing
from linklab.traces.lines import Lines
from linklab.traces.tables import RecordedTable
from linklab.traces.times import TimeColumn
from linklab.traces.trace import TraceFile, TraceSample

NEEDED: Final = ("Timestamp", "DL_bitrate", "UL_bitrate")

_ENOUGH: Final = 3
"""The least lines with a ping, and without, that are compared."""

_DIP: Final = 0.5
"""The share of the usual rate below which a note says so."""

_SPACING: Final = Spacing("Timestamp", "DL_bitrate")


def read(file: BinaryIO, name: str) -> TraceFile:
    """Reads the trace, one sample per logged second. Raises TraceError."""
    notes: list[str] = []
    table = RecordedTable.of(Lines(file, name), NEEDED, notes)
    cells = Cells(table, NEEDED, ("PINGAVG", "State"), (), None)
    columns = {"up", "rtt"} if cells.has("PINGAVG") else {"up"}
    return TraceFile(_samples(table, cells), frozenset(columns), notes=notes)


def _samples(table: RecordedTable, cells: Cells) -> Iterator[TraceSample]:
    times = TimeColumn(table, "Timestamp")
    rows = idle = 0
    rates: dict[bool, list[int]] = {True: [], False: []}
    """In bit/s, of lines with a ping and of others."""

    def convert() -> MeasuredLine:
        nonlocal rows, idle
        text = cells.text("Timestamp")
        one = MeasuredLine(
            text,
            times.ns(text),
            down_bps=cells.bps("DL_bitrate", 1000),
            up_bps=cells.bps("UL_bitrate", 1000),
            rtt_s=cells.seconds("PINGAVG"),
        )
        if one.down_bps is not None:
            rates[one.rtt_s is not None].append(one.down_bps)
        rows += 1
        idle += cells.has("State") and cells.text("State") == "I"
        return one

    yield from intervals.samples(table, _SPACING, cells.rows(convert))
    _tell_dips(rates[True], rates[False], table.notes)
    if idle:
        table.notes.append(f"in {idle} of {rows} lines the phone was idle: the link may carry more")


def _tell_dips(with_ping: list[int], others: list[int], notes: list[str]) -> None:
    """Notes that the logger's rates are low in lines with a ping."""
    if min(len(with_ping), len(others)) < _ENOUGH:
        return
    low, usual = (statistics.median(rates) for rates in (with_ping, others))
    if low < _DIP * usual:
        notes.append(
            f"in {len(with_ping)} lines with a ping the median rate is {low / 1e6:.3g} Mbit/s, in "
            f"others {usual / 1e6:.3g} Mbit/s: the logger's dips, and hardly the link's"
        )


def _begins(line: str, where: str) -> bool:
    return "Timestamp" in line and "DL_bitrate" in line


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    return read(file, name)


FORMAT: Final = Format(
    name="ucc",
    looks="G-NetTrack's CSV with Timestamp, DL_bitrate, UL_bitrate",
    begins=_begins,
    read=_read,
    keeps=frozenset({"up", "rtt"}),
)
