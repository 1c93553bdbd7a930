"""Reads sets of Starlink: *Starlink on the Autobahn* (OJCOMS 2025), *WetLinks* (TMA 2024), *LENS* (MMSys
2024).

Five kinds of tables are read, by their columns:

- `timestamp_start_dl`, `download`, `upload` in Mbit/s: the motorway's throughput.
- `timestamp_start`, `download`, `upload` in bit/s: throughput of a dish that stands.
- `timestamp_start`, `ping_avg` in ms, `packet_loss` in percent: a line for several pings.
- `timestamp`, `icmp_seq`, `time` in ms: a line for every ping. A negative time, or `lost`, is a loss.
- `timestamp`, `rtt` in ms, perhaps `uplink`, `downlink`: a line for every probe of LENS. Where a
  probe was lost, the way that lost it is -1. What the uplink lost does not count.

Lines are a second long in tests of 15 s or more. The time between two tests is left out. iperf3 measured
the rates, so they are those of payload. If a file tells no zone, only differences of its times count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final

from linklab.traces import intervals, probes
from linklab.traces.cells import FRAMES_PER_PAYLOAD, PAYLOAD_TOLD, Cells
from linklab.traces.format import Format, Options
from linklab.traces.intervals import MeasuredLine, Spacing
from linklab.traces.lines import Lines
from linklab.traces.probes import Probe
from linklab.traces.tables import RecordedTable, names_of
from linklab.traces.times import TimeColumn
from linklab.traces.trace import TraceFile

_APART: Final = (
    *("site_name", "server", "target", "ip_protocol", "transport_protocol", "mode", "repetition"),
    *("destination_IP", "link_name"),
)
_MOTORWAY: Final = {"timestamp_start_dl", "download"}
_STANDING: Final = {"timestamp_start", "download"}
_PINGS: Final = {"timestamp_start", "ping_avg"}
_PROBES: Final = {"timestamp", "icmp_seq", "time"}
_LENS: Final = {"timestamp", "rtt"}


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    notes: list[str] = []
    table = RecordedTable.of(Lines(file, name), ("timestamp_start", "download"), notes)
    names = set(table.names)
    if names >= _PROBES or names >= _LENS:
        return _of_probes(table, options, "time" if names >= _PROBES else "rtt")
    if names >= _MOTORWAY:
        return _of_rates(table, options, "_dl", 10**6)
    if names >= _STANDING:
        return _of_rates(table, options, "", 1)
    return _of_pings(table, options)


def _of_rates(table: RecordedTable, options: Options, suffix: str, unit_bps: int) -> TraceFile:
    begin, end = f"timestamp_start{suffix}", f"timestamp_end{suffix}"
    optional = (end, "upload", "ping_avg")
    cells = Cells(table, (begin, "download"), optional, _APART, options.only)
    interval = _interval_of(table, cells, begin, end)

    def convert() -> MeasuredLine:
        return MeasuredLine(
            *interval(),
            cells.bps("download", unit_bps, FRAMES_PER_PAYLOAD),
            cells.bps("upload", unit_bps, FRAMES_PER_PAYLOAD),
            cells.seconds("ping_avg"),
        )

    columns = {"up": "upload", "rtt": "ping_avg"}
    return TraceFile(
        intervals.samples(table, Spacing(begin, "download", leaves_out=True), cells.rows(convert)),
        frozenset(key for key, column in columns.items() if cells.has(column)),
        [PAYLOAD_TOLD],
        table.notes,
    )


def _of_pings(table: RecordedTable, options: Options) -> TraceFile:
    begin, end = "timestamp_start", "timestamp_end"
    cells = Cells(table, (begin, "ping_avg"), (end, "packet_loss"), _APART, options.only)
    interval = _interval_of(table, cells, begin, end)

    def convert() -> MeasuredLine:
        return MeasuredLine(
            *interval(),
            rtt_s=cells.seconds("ping_avg"),
            loss_ratio=cells.percent("packet_loss"),
        )

    return TraceFile(
        intervals.samples(table, Spacing(begin, None, leaves_out=True), cells.rows(convert)),
        frozenset({"rtt", "loss"} if cells.has("packet_loss") else {"rtt"}),
        notes=table.notes,
        has_rates=False,
    )


def _interval_of(
    table: RecordedTable, cells: Cells, begin: str, end: str
) -> Callable[[], tuple[str, int, int | None]]:
    """Returns a function that reads a line's begin as written, and its begin and end in ns."""
    begins, ends = TimeColumn(table, begin), TimeColumn(table, end)

    def interval() -> tuple[str, int, int | None]:
        text = cells.text(begin)
        return text, begins.ns(text), ends.ns(cells.text(end)) if cells.has(end) else None

    return interval


def _of_probes(table: RecordedTable, options: Options, column: str) -> TraceFile:
    ways = ("uplink", "downlink")
    cells = Cells(table, ("timestamp", column), ("lost", *ways), _APART, options.only)
    times = TimeColumn(table, "timestamp")

    def is_lost_by(way: str) -> bool:
        return cells.has(way) and cells.text(way).startswith("-")

    def convert() -> Probe | None:
        t_ns = times.ns(cells.text("timestamp"))
        if is_lost_by("uplink"):
            return None
        is_lost = cells.has("lost") and cells.text("lost").casefold() in ("true", "1", "1.0")
        is_lost = is_lost or is_lost_by("downlink") or cells.text(column).startswith("-")
        return Probe(t_ns, None if is_lost else cells.seconds(column))

    return probes.trace(cells.rows(convert), options.bin_s, table.lines.fail, table.notes)


def _begins(line: str, where: str) -> bool:
    names = set(names_of(line))
    return any(names >= kind for kind in (_MOTORWAY, _STANDING, _PINGS, _PROBES, _LENS))


FORMAT: Final = Format(
    name="starlink",
    looks="CSV of Starlink on the Autobahn, WetLinks or LENS",
    begins=_begins,
    read=_read,
    keeps=frozenset({"up", "rtt", "loss"}),
    takes=frozenset({"only"}),
)
