"""Reads the times of a column: numbers, or dates with clocks.

The first time decides the form, and all others must have it. A number counts seconds. If it is too
large for that, it counts ms, µs or ns since 1970. A date is YYYY-MM-DD HH:MM:SS with up to 9 decimals.
`/`, `.` and `_` may separate its parts, as in G-NetTrack's logs. Either all dates have a zone, or none
has. Only differences of times count.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, NoReturn

from linklab.traces.lines import quoted
from linklab.traces.tables import RecordedTable
from linklab.traces.trace import NS_PER_S

MAX_S: Final = 100_000_000_000
"""The latest time in seconds: in the year 5138."""

_UNITS: Final = ((MAX_S, 9, "s"), (MAX_S * 10**3, 6, "ms"), (MAX_S * 10**6, 3, "µs"))
"""For each unit above the nanosecond: its largest number, digits down to nanoseconds, name."""

_DATE: Final = re.compile(
    r"(\d{4})([-./])(\d\d)\2(\d\d)[T _](\d\d)([:.])(\d\d)\6(\d\d)(?:[.,](\d{1,9}))?"
    r"(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1)


class TimeColumn:
    """Reads the times of a column, one after another."""

    def __init__(self, table: RecordedTable, column: str) -> None:
        self._table = table
        self._column = column
        self._digits: int | None = None
        self._has_zone: bool | None = None

    def ns(self, text: str) -> int:
        """Returns a time in nanoseconds. Raises TraceError."""
        if self._digits is not None:
            return self._number(text, self._digits)
        date = _DATE.fullmatch(text.strip())
        if date is not None:
            return self._date(text, date)
        if self._has_zone is not None or _looks_like_date(text):
            self._refuse(text)
        self._digits = self._digits_of(text)
        return self._number(text, self._digits)

    def _digits_of(self, text: str) -> int:
        value = self._table.decimal(self._column, text, 0, MAX_S * 10**9, "s")
        fitting = ((digits, unit) for largest, digits, unit in _UNITS if value <= largest)
        digits, unit = next(fitting, (0, "ns"))
        if unit != "s":
            self._table.notes.append(f"{self._column}: {quoted(text)} is read as {unit} since 1970")
        return digits

    def _number(self, text: str, digits: int) -> int:
        largest = MAX_S * 10 ** (9 - digits)
        unit = next((name for _, count, name in _UNITS if count == digits), "ns")
        value = self._table.decimal(self._column, text, 0, largest, unit)
        return int(value.scaleb(digits).to_integral_value())

    def _date(self, text: str, date: re.Match[str]) -> int:
        has_zone = date[10] is not None
        if self._has_zone is None:
            self._has_zone = has_zone
        elif self._has_zone != has_zone:
            self._table.lines.fail(
                f"{quoted(text)} has {'a' if has_zone else 'no'} zone, unlike the times above; "
                "allowed: a zone in every time or in none",
                self._column,
            )
        year, month, day, hour, minute, second = (int(date[k]) for k in (1, 3, 4, 5, 7, 8))
        try:
            since = datetime(year, month, day, hour, minute, second) - _EPOCH - _offset(date[10])
        except ValueError:
            self._refuse(text)
        whole_s = since.days * 86_400 + since.seconds
        if whole_s < 0:
            self._refuse(text)
        return whole_s * NS_PER_S + int((date[9] or "").ljust(9, "0"))

    def _refuse(self, text: str) -> NoReturn:
        self._table.lines.fail(
            f"{quoted(text)} is no time; allowed: YYYY-MM-DD HH:MM:SS, since 1970, with a zone such "
            "as +02:00 or without, or numbers of seconds",
            self._column,
        )


def _looks_like_date(text: str) -> bool:
    """Tells whether a text that is no date known here was meant as one."""
    return any(mark in text.strip()[1:] for mark in (":", "/", "-", "_", " ")) and "e-" not in text


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in ("Z", "UTC", "GMT"):
        return timedelta()
    digits = zone[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or "0")
    if hours > 14 or minutes > 59:
        raise ValueError(zone)
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
