"""Reads a text file line by line, and names the line in errors."""

from __future__ import annotations

import codecs
import re
from decimal import Decimal
from typing import BinaryIO, Final, NoReturn

from linklab.traces.trace import TraceError

MAX_LINE_BYTES = 1 << 20
"""Longer lines are refused. No format has them, and memory must not depend on the file."""

MAX_LINES: Final = 10_000_000
"""More lines are refused, which takes up to some minutes."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_SHOWN = 40

TRUNCATED: Final = "the last line is cut off: it is left out"
"""The note on a file that ends within a line."""

_BEHIND_IN_A_ROW: Final = 10
_BEHIND_IN_ALL: Final = 0.1
"""The number of consecutive lines, and the share of all lines, that may be earlier than a line above."""


class Lines:
    """Iterates over a file's lines without line ends. UTF-8, a byte order mark and CRLF are allowed.
    `errors` says what happens to bytes that are no UTF-8, as for `bytes.decode`.

    Attributes:
        name: names the file in errors.
        number: number of the last line, from 1.
        is_truncated: the file ends within the last line, or without a line end.
    """

    def __init__(self, file: BinaryIO, name: str, errors: str = "strict") -> None:
        self._file = file
        self._errors = errors
        self.name = name
        self.number = 0
        self.is_truncated = False

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        raw = self._file.readline(MAX_LINE_BYTES + 1)
        if not raw:
            raise StopIteration
        self.number += 1
        if self.number > MAX_LINES:
            self.fail(
                f"has more than {MAX_LINES} lines; allowed: fewer, such as every 100th line: "
                "awk 'NR % 100 == 1'"
            )
        self.is_truncated = not raw.endswith(b"\n")
        if len(raw) > MAX_LINE_BYTES:
            self.fail(f"is too long for a line of text; allowed: up to {MAX_LINE_BYTES} bytes")
        if self.number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            return raw.decode("utf-8", self._errors).rstrip("\r\n")
        except UnicodeDecodeError as error:
            if self.is_truncated and error.reason == "unexpected end of data":
                return raw.decode("utf-8", "ignore")
            byte = raw[error.start]
            self.fail(f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8; allowed: UTF-8 text")

    def fail(self, reason: str, column: str = "") -> NoReturn:
        """Raises TraceError for the last line."""
        where = f"{self.name}:{max(self.number, 1)}: "
        raise TraceError(where + (f"{column}: {reason}" if column else reason))

    def decimal(self, column: str, text: str, low: int, high: int, unit: str) -> Decimal:
        """Returns the number in a field. Raises TraceError unless it is from `low` to `high`."""
        text = text.strip()
        if not _NUMBER.fullmatch(text):
            self._refuse_number(column, text, low, high, unit)
        value = Decimal(text)
        if not low <= value <= high:
            self._refuse_value(column, text, value, low, high, unit)
        return value

    def _refuse_number(self, column: str, text: str, low: int, high: int, unit: str) -> NoReturn:
        allowed = _allowed(low, high, unit)
        if not text:
            self.fail(f"is missing; {allowed}", column)
        finite = "finite" if _NOT_FINITE.fullmatch(text) else "a number"
        self.fail(f"{quoted(text)} is not {finite}; {allowed}", column)

    def _refuse_value(
        self, column: str, text: str, value: Decimal, low: int, high: int, unit: str
    ) -> NoReturn:
        problem = "is too much"
        if value < low:
            problem = "is negative" if value < 0 else "is too little"
        self.fail(f"{quoted(text)} {problem}; {_allowed(low, high, unit)}", column)


class InTime:
    """Leaves out lines that are earlier than a line above, as long as they are few.

    The clock ran back, or a line was written late. `notes` gets what was done.
    """

    def __init__(self, lines: Lines, column: str, notes: list[str]) -> None:
        self._lines = lines
        self._column = column
        self._notes = notes
        self._count = self._behind = self._in_a_row = 0
        self._first = 0

    def passes(self, text: str, *, is_behind: bool) -> bool:
        """Tells whether a line with this time stays. Raises TraceError if too many are left out."""
        self._count += 1
        if not is_behind:
            self._in_a_row = 0
            return True
        self._behind += 1
        self._in_a_row += 1
        self._first = self._first or self._lines.number
        if self._in_a_row > _BEHIND_IN_A_ROW:
            self._lines.fail(
                f"{quoted(text)} and {_BEHIND_IN_A_ROW} lines before it are not after the line above "
                f"them; allowed: lines in order of time, at most {_BEHIND_IN_A_ROW} in a row are not",
                self._column,
            )
        return False

    def end(self) -> None:
        """Notes the number of lines left out, or raises TraceError."""
        if self._behind > max(1, _BEHIND_IN_ALL * self._count):
            self._lines.fail(
                f"{self._behind} of {self._count} lines are not after a line above them; allowed: "
                f"up to {_BEHIND_IN_ALL * 100:.0f} %",
                self._column,
            )
        if self._behind:
            self._notes.append(
                f"{self._behind} of {self._count} lines are not after a line above them (line "
                f"{self._first} first): they are left out"
            )


def _allowed(low: int, high: int, unit: str) -> str:
    return f"allowed: {low} to {high}{' ' if unit else ''}{unit}"


def quoted(text: str) -> str:
    """Quotes a field for errors, shortened if it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
