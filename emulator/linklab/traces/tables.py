"""Reads tables: a line of names, then lines of fields. Every format of tables is read here.

Commas, semicolons or tabs separate fields, which may be quoted. Lines that begin with # are comments.
`MISSING` lists what a cell without a value holds. Where no comma separates fields, a number may have a
decimal comma. A quoted number may have one, too, unless it could be thousands. A file has one decimal
mark. Anything else is refused with its line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from typing import Final, TypeVar

from linklab.traces.lines import TRUNCATED, Lines, quoted
from linklab.traces.trace import TraceError

MISSING: Final = frozenset({"", "-", "--", "nan", "na", "n/a", "null", "none"})
"""What a cell without a value holds, in small letters."""

_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs"}
_COMMA: Final = re.compile(r"([+-]?\d+),(\d+)", re.ASCII)

T = TypeVar("T")


def names_of(line: str) -> list[str]:
    """Returns the names in a table's first line, to recognise a format by it."""
    text = line.strip(" ")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=_separator(text)), [])]
    except csv.Error:
        return []


def _separator(header: str) -> str:
    """Returns the separator that gives the most names."""

    def count(separator: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=separator), []))
        except csv.Error:
            return 0

    return max(_SEPARATORS, key=count)


class RecordedTable:
    """A table that is being read.

    Attributes:
        names: of the columns, as written.
        notes: for the user who imports the file.
    """

    def __init__(self, lines: Lines, header: str, notes: list[str]) -> None:
        self.lines = lines
        self.notes = notes
        self._header = header.strip(" ")
        self._header_line = lines.number
        self._separator = _separator(self._header)
        self.names = [name.strip() for name in self.fields(self._header)]
        self._mark: str | None = None
        self._noted: set[str] = set()

    @classmethod
    def of(cls, lines: Lines, needed: Collection[str], notes: list[str]) -> RecordedTable:
        """Reads the line of names, which comes first except for comments. Raises TraceError."""
        header = next((one for one in lines if one.strip() and not one.startswith("#")), None)
        if header is None:
            lines.fail(f"the file is empty; needed: CSV with {', '.join(needed)}")
        return cls(lines, header, notes)

    def fields(self, line: str) -> list[str]:
        if '"' not in line and "\r" not in line:
            return line.split(self._separator)
        try:
            return next(csv.reader([line], delimiter=self._separator, strict=True), [])
        except csv.Error as error:
            reason = str(error).partition(" - ")[0]
            between = _SEPARATORS[self._separator]
            self.lines.fail(f"is no line of CSV: {reason}; allowed: fields apart by {between}")

    def indices(self, needed: Collection[str], optional: Collection[str] = ()) -> dict[str, int]:
        """Returns the positions of columns by name. Raises TraceError if a needed one is missing, or
        one is there twice."""
        found: dict[str, int] = {}
        for name in (*needed, *optional):
            if self.names.count(name) > 1:
                self.lines.fail(f"the column {name!r} is named twice; allowed: once")
            if name in self.names:
                found[name] = self.names.index(name)
            elif name in needed:
                wanted = ", ".join(needed)
                self.lines.fail(f"the column {name!r} is missing; needed: {wanted}")
        return found

    def rows(
        self, convert: Callable[[list[str]], T], comment: Callable[[str], None] = lambda _: None
    ) -> Iterator[T]:
        """Yields what `convert` makes of each line's fields. `comment` gets each comment.

        A last line that is cut off is left out, and `notes` says so. Raises TraceError.
        """
        has_any = False
        for line in self.lines:
            text = line.strip()
            try:
                if text.startswith("#"):
                    comment(text)
                    continue
                if not text:
                    continue
                one = convert(self._row(line.strip(" ")))
            except TraceError:
                if not self.lines.is_truncated or not has_any:
                    raise
                self.notes.append(TRUNCATED)
                return
            has_any = True
            yield one

    def _row(self, text: str) -> list[str]:
        if text == self._header:
            self.lines.fail("the columns are named again; allowed: one recording in a file")
        fields = self.fields(text)
        if len(fields) != len(self.names):
            self.lines.fail(
                f"the line has {len(fields)} field{'' if len(fields) == 1 else 's'}; "
                f"allowed: {len(self.names)} as in line {self._header_line}"
            )
        return fields

    def decimal(self, column: str, text: str, low: int, high: int, unit: str) -> Decimal:
        """Returns the number in a cell. Raises TraceError unless it is from `low` to `high`."""
        if self._mark != "." and "." in text:
            self._set_mark(column, text, ".")
        if "," in text:
            text = self._with_point(column, text.strip())
        return self.lines.decimal(column, text, low, high, unit)

    def known(self, column: str, text: str, low: int, high: int, unit: str) -> Decimal | None:
        """Returns the number in a cell; None if it is missing."""
        if is_missing(text):
            word = text.strip()
            if word not in ("", "-") and column not in self._noted:
                self._noted.add(column)
                self.notes.append(
                    f"{column}: {quoted(word)} (line {self.lines.number} first) is read as no value"
                )
            return None
        return self.decimal(column, text, low, high, unit)

    def _with_point(self, column: str, text: str) -> str:
        number = _COMMA.fullmatch(text)
        if number is None:
            return text  # It is no number, and is refused as such.
        whole, decimals = number.groups()
        may_be_thousands = len(decimals) == 3 and len(whole.lstrip("+-0")) in (1, 2, 3)
        if may_be_thousands and self._separator == "," and self._mark is None:
            self.lines.fail(
                f"{quoted(text)} may be {whole}.{decimals} or {whole}{decimals}; "
                "allowed: '.' in numbers",
                column,
            )
        if self._mark is None:
            self.notes.append(f"decimal commas: {quoted(text)} is read as {whole}.{decimals}")
        self._set_mark(column, text, ",")
        return f"{whole}.{decimals}"

    def _set_mark(self, column: str, text: str, mark: str) -> None:
        if self._mark is None:
            self._mark = mark
        elif self._mark != mark:
            self.lines.fail(
                f"{quoted(text)} has {mark!r}, and a number above {self._mark!r}; allowed: one "
                "decimal mark in a file",
                column,
            )


def is_missing(text: str) -> bool:
    """Tells whether a cell has no value."""
    return text.strip().casefold() in MISSING
