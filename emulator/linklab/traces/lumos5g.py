"""Reads the Lumos5G set: mmWave 5G on foot and by car (Narayanan et al., IMC 2020).

Its table has a line per second: `seq_num` and `Throughput` in Mbit/s. `run_num`, `mobility_mode` and
`trajectory_direction` tell runs apart. iperf3 measured the rates, so they are those of payload.
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

_NEEDED: Final = ("seq_num", "Throughput")
_APART: Final = ("run_num", "mobility_mode", "trajectory_direction")
_MOST_S: Final = 1_000_000


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    notes: list[str] = []
    table = RecordedTable.of(Lines(file, name), _NEEDED, notes)
    cells = Cells(table, _NEEDED, (), _APART, options.only)

    def convert() -> MeasuredLine:
        return MeasuredLine(
            cells.text("seq_num"),
            cells.count("seq_num", _MOST_S) * NS_PER_S,
            down_bps=cells.bps("Throughput", 10**6, FRAMES_PER_PAYLOAD),
        )

    spacing = Spacing("seq_num", "Throughput")
    return TraceFile(
        intervals.samples(table, spacing, cells.rows(convert)), frozenset(), [PAYLOAD_TOLD], notes
    )


def _begins(line: str, where: str) -> bool:
    return {*_NEEDED, "run_num"} <= set(names_of(line))


FORMAT: Final = Format(
    name="lumos5g",
    looks="Lumos5G's CSV with run_num, seq_num, Throughput",
    begins=_begins,
    read=_read,
    keeps=frozenset(),
    takes=frozenset({"only"}),
)
