"""Reads the 5Gophers set: 5G of three operators in 2019 (Narayanan et al., WWW 2020).

Its tables have a line per second: `seq_num`, `throughput_mbps` and other columns that tell runs apart.
Those of drives have a column of each operator instead, such as `Verizon_throughput_mbps`;
`--only carrier=Verizon` chooses it. Its ping traces have `probe_num` and `rtt_in_ms`.

iperf3 measured the rates, so they are those of payload. The delay of its TCP contains the queue of its
own load. It is read only if it is named to be kept. Pings are taken to be a second apart.
"""

from __future__ import annotations

from typing import BinaryIO, Final

from linklab.traces import intervals
from linklab.traces.cells import FRAMES_PER_PAYLOAD, PAYLOAD_TOLD, Cells
from linklab.traces.format import Format, Options
from linklab.traces.intervals import MeasuredLine, Spacing
from linklab.traces.lines import Lines
from linklab.traces.tables import RecordedTable, names_of
from linklab.traces.trace import NS_PER_S, TraceFile

_RATE: Final = "throughput_mbps"
_RTT: Final = "rtt_in_ms"
_COUNTS: Final = ("seq_num", "probe_num")
_CARRIER: Final = "carrier"
_MOST_S: Final = 1_000_000


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    notes: list[str] = []
    table = RecordedTable.of(Lines(file, name), ("seq_num", _RATE), notes)
    only = dict(options.only or {})
    rate: str | None = _RATE
    if _RATE not in table.names and _RTT not in table.names:
        rate = _of_carrier(table, only)
    elif _RATE not in table.names or only.get("protocol", "").casefold() == "icmp":
        rate = None
    has_rtt = rate is None or "rtt" in (options.keep or ())
    count = next((one for one in _COUNTS if one in table.names), _COUNTS[0])
    used = (count, *([rate] if rate else []), _RTT)
    cells = Cells(
        table,
        (count, rate or _RTT),
        (_RTT,) if has_rtt else (),
        [one for one in table.names if one not in used and not one.endswith(_RATE)],
        only,
    )

    def convert() -> MeasuredLine:
        return MeasuredLine(
            cells.text(count),
            cells.count(count, _MOST_S) * NS_PER_S,
            down_bps=None if rate is None else cells.bps(rate, 10**6, FRAMES_PER_PAYLOAD),
            rtt_s=cells.seconds(_RTT) if has_rtt else None,
        )

    return TraceFile(
        intervals.samples(table, Spacing(count, rate), cells.rows(convert)),
        frozenset({"rtt"} if cells.has(_RTT) else ()),
        [PAYLOAD_TOLD] if rate else [],
        notes,
        has_rates=rate is not None,
    )


def _of_carrier(table: RecordedTable, only: dict[str, str]) -> str:
    """Returns the column of the chosen operator, and takes the choice out of `only`."""
    suffix = f"_{_RATE}"
    columns = {one.removesuffix(suffix): one for one in table.names if one.endswith(suffix)}
    if not columns:
        return _RATE  # It is missing, and is refused as such.
    chosen = only.pop(_CARRIER, "")
    fitting = [
        column
        for carrier, column in columns.items()
        if carrier.casefold() == chosen.casefold() or (len(columns) == 1 and not chosen)
    ]
    if not fitting:
        needed = ", ".join(f"--only {_CARRIER}={carrier}" for carrier in columns)
        table.lines.fail(f"each operator has a column; needed: one of {needed}")
    return fitting[0]


def _begins(line: str, where: str) -> bool:
    names = names_of(line)
    values = [one for one in names if one.endswith(_RATE) or one == _RTT]
    return bool(values) and any(count in names for count in _COUNTS)


FORMAT: Final = Format(
    name="5gophers",
    looks="5Gophers' CSV with seq_num, throughput_mbps",
    begins=_begins,
    read=_read,
    keeps=frozenset({"rtt"}),
    takes=frozenset({"only"}),
)
