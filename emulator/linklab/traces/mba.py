"""Reads the raw data of the FCC's *Measuring Broadband America*: fixed lines of the United States.

Each month has a table per kind of test. `unit_id` and `target` tell recordings apart. These are read:

- curr_httpgetmt and curr_httppostmt, down and up: a line for every 5 s of a test. `sequence` counts
  them from `dtime` on. `bytes_sec_interval` is the payload in that time. Tests are hours apart, and this
  time is left out. Both tables have the same columns, so the file's name must tell the direction.
- curr_ping, curr_dlping, curr_ulping, curr_udplatency: `rtt_avg` in µs, of `successes` and `failures`. A
  line holds until the next one.

A line in which all of a test failed has no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from linklab.traces import intervals
from linklab.traces.cells import FRAMES_PER_PAYLOAD, PAYLOAD_TOLD, Cells
from linklab.traces.format import Format, Options
from linklab.traces.intervals import MeasuredLine, Spacing
from linklab.traces.lines import Lines
from linklab.traces.tables import RecordedTable, names_of
from linklab.traces.times import TimeColumn
from linklab.traces.trace import NS_PER_S, TraceError, TraceFile

STEP_NS: Final = 5 * NS_PER_S
"""The time of a line of a throughput test."""

_RATES: Final = ("unit_id", "dtime", "bytes_sec_interval", "sequence")
_PINGS: Final = ("unit_id", "dtime", "rtt_avg")
_RESULTS: Final = ("successes", "failures")
_APART: Final = ("unit_id", "target")
_MOST: Final = 1_000_000_000
_HOUR_NS: Final = 3600 * NS_PER_S


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    notes: list[str] = []
    table = RecordedTable.of(Lines(file, name), _RATES, notes)
    if "rtt_avg" in table.names:
        return _of_pings(table, options)
    wrong, right = ("httpget", "httppost") if only_up else ("httppost", "httpget")
    if wrong in name.rpartition("/")[2]:
        way = "uplink" if only_up else "downlink"
        raise TraceError(f"{name}: is not of the {way}; allowed as the {way}: curr_{right}mt")
    return _of_rates(table, options)


def _of_rates(table: RecordedTable, options: Options) -> TraceFile:
    cells = Cells(table, _RATES, _RESULTS, _APART, options.only)
    times = TimeColumn(table, "dtime")

    def convert() -> MeasuredLine:
        text = cells.text("dtime")
        t_ns = times.ns(text) + cells.count("sequence", _MOST) * STEP_NS
        has_failed = _has_failed(cells)
        rate_bps = None if has_failed else cells.bps("bytes_sec_interval", 8, FRAMES_PER_PAYLOAD)
        return MeasuredLine(text, t_ns, t_ns + STEP_NS, rate_bps)

    spacing = Spacing("dtime", "bytes_sec_interval", STEP_NS, leaves_out=True)
    return TraceFile(
        intervals.samples(table, spacing, _with_values(cells, table, cells.rows(convert))),
        frozenset(),
        [PAYLOAD_TOLD],
        table.notes,
    )


def _with_values(
    cells: Cells, table: RecordedTable, found: Iterator[MeasuredLine]
) -> Iterator[MeasuredLine]:
    """Yields the intervals of tests that did not fail."""
    failed = 0
    for one in found:
        if one.down_bps is None and one.rtt_s is None:
            failed += 1
        else:
            yield one
    if failed:
        table.notes.append(f"{failed} lines of tests that failed are left out")


def _has_failed(cells: Cells) -> bool:
    return cells.has("successes") and cells.count("successes", _MOST) == 0


def _of_pings(table: RecordedTable, options: Options) -> TraceFile:
    cells = Cells(table, _PINGS, _RESULTS, _APART, options.only)
    times = TimeColumn(table, "dtime")
    has_loss = all(cells.has(one) for one in _RESULTS)

    def convert() -> MeasuredLine:
        text = cells.text("dtime")
        loss = None
        if has_loss:
            came, lost = (cells.count(one, _MOST) for one in _RESULTS)
            loss = lost / (came + lost) if came + lost else None
        rtt_s = None if _has_failed(cells) else cells.seconds("rtt_avg", 10**6)
        return MeasuredLine(text, times.ns(text), rtt_s=rtt_s, loss_ratio=loss)

    spacing = Spacing("dtime", None, _HOUR_NS, 2 * _HOUR_NS)
    return TraceFile(
        intervals.samples(table, spacing, cells.rows(convert)),
        frozenset({"rtt", "loss"} if has_loss else {"rtt"}),
        notes=table.notes,
        has_rates=False,
    )


def _begins(line: str, where: str) -> bool:
    names = set(names_of(line))
    return names >= set(_RATES) or names >= set(_PINGS)


FORMAT: Final = Format(
    name="mba",
    looks="CSV of the FCC's Measuring Broadband America",
    begins=_begins,
    read=_read,
    keeps=frozenset({"up", "rtt", "loss"}),
    takes=frozenset({"only", "uplink"}),
)
