"""Reads the values of a data set's lines: rates, delays, shares; and chooses a recording of several.

A file of a data set may hold many recordings, one below the other or mixed. Its columns tell them
apart. `--only COLUMN=VALUE` chooses one. A file in which two are left is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeVar

from linklab.core.frames import FRAME_BYTES, SEGMENT_BYTES
from linklab.core.limits import MAX_RATE_BPS, MAX_RTT_S
from linklab.traces.lines import quoted
from linklab.traces.tables import RecordedTable

FRAMES_PER_PAYLOAD: Final = FRAME_BYTES / SEGMENT_BYTES
"""The bytes of frames per byte that a download over TCP counts."""

UNITS: Final[dict[str, tuple[int, int, float]]] = {
    "bit/s": (1, 1, MAX_RATE_BPS),
    "kbit/s": (1000, 1, MAX_RATE_BPS),
    "Mbit/s": (10**6, 1, MAX_RATE_BPS),
    "ms": (1, 1000, MAX_RTT_S),
    "%": (1, 100, 1),
}
"""By unit: a multiplier and a divisor that give bit/s, seconds or a ratio, and their limit."""

T = TypeVar("T")


class Cells:
    """The values of the line that is being read.

    `needed` and `optional` are the columns that are used, `apart` those that tell recordings apart.
    Raises TraceError if one is missing.
    """

    def __init__(
        self,
        table: RecordedTable,
        needed: Collection[str],
        optional: Collection[str],
        apart: Collection[str],
        only: Mapping[str, str] | None,
    ) -> None:
        only = only or {}
        self._table = table
        self._at = table.indices(needed, optional)
        self._apart = table.indices((), [name for name in apart if name not in only])
        self._only = {self._chosen(name): value for name, value in only.items()}
        self._fields: list[str] = []
        self._first: dict[str, str] = {}
        self._first_line = 0

    def _chosen(self, name: str) -> int:
        if name not in self._table.names:
            names = ", ".join(one for one in self._table.names if one)
            self._table.lines.fail(f"has no column {quoted(name)} to choose by; allowed: {names}")
        return self._table.names.index(name)

    def has(self, column: str) -> bool:
        return column in self._at

    def rows(self, convert: Callable[[], T | None]) -> Iterator[T]:
        """Yields what `convert` makes of each line of the chosen recording, unless it is None.

        Raises TraceError.
        """

        def convert_if_chosen(fields: list[str]) -> T | None:
            return convert() if self._take(fields) else None

        yield from (one for one in self._table.rows(convert_if_chosen) if one is not None)
        if self._only and not self._first_line:
            self._table.lines.fail("no line is of the chosen recording; needed: another --only")

    def _take(self, fields: list[str]) -> bool:
        """Takes in a line. Tells whether it belongs to the chosen recording.

        Raises TraceError if it belongs to another one than the lines before.
        """
        for index, value in self._only.items():
            if fields[index].strip().casefold() != value.strip().casefold():
                return False
        self._fields = fields
        told = {name: fields[index].strip() for name, index in self._apart.items()}
        if not self._first_line:
            self._first, self._first_line = told, self._table.lines.number
        for name, value in told.items():
            if value != self._first[name]:
                first = self._first[name]
                self._table.lines.fail(
                    f"{quoted(value)}, and {quoted(first)} in line {self._first_line}: several "
                    f"recordings are in the file; needed: --only '{name}={first}', or another",
                    name,
                )
        return True

    def text(self, column: str) -> str:
        return self._fields[self._at[column]].strip()

    def value(self, column: str, unit: str, frames: float = 1.0) -> float | None:
        """Returns a value in bit/s, seconds or as a ratio, times `frames`; None if it is missing. Raises TraceError."""
        if column not in self._at:
            return None
        times, per, limit = UNITS[unit]
        most = int(limit * per / times / frames)
        value = self._table.known(column, self.text(column), 0, most, unit)
        return None if value is None else float(value * times / per) * frames
