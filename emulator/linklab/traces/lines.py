"""The lines of a text file, one at a time, and errors that say which one is wrong."""

from __future__ import annotations

import codecs
import re
from decimal import Decimal
from typing import BinaryIO, NoReturn

from linklab.traces.trace import TraceError

MAX_LINE_BYTES = 1 << 20
"""Longer lines are refused: no format has them, and memory is not to depend on the file."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_SHOWN = 40


class Lines:
    """Iterates over a file's lines without their ends: UTF-8, a byte order mark and CRLF pass.

    `name` stands for the file in errors, `number` is that of the line given last, from 1.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name
        self.number = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        raw = self._file.readline(MAX_LINE_BYTES + 1)
        if not raw:
            raise StopIteration
        self.number += 1
        if len(raw) > MAX_LINE_BYTES:
            self.fail(f"is too long for a line of text; allowed: up to {MAX_LINE_BYTES} bytes")
        if self.number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            return raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            self.fail(f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8; allowed: UTF-8 text")

    def fail(self, reason: str, column: str = "") -> NoReturn:
        """Refuses the line given last."""
        where = f"{self.name}:{max(self.number, 1)}: "
        raise TraceError(where + (f"{column}: {reason}" if column else reason))

    def decimal(self, column: str, text: str, low: int, high: int, unit: str) -> Decimal:
        """The number in a field, within `low` to `high`; refuses the line otherwise."""
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
        self.fail(f"{shown(text)} is not {finite}; {allowed}", column)

    def _refuse_value(
        self, column: str, text: str, value: Decimal, low: int, high: int, unit: str
    ) -> NoReturn:
        problem = "is too much"
        if value < low:
            problem = "is negative" if value < 0 else "is too little"
        self.fail(f"{shown(text)} {problem}; {_allowed(low, high, unit)}", column)


def _allowed(low: int, high: int, unit: str) -> str:
    return f"allowed: {low} to {high}{' ' if unit else ''}{unit}"


def shown(text: str) -> str:
    """A field as errors quote it: not at any length."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
