"""Feeds a JSON file to a parser line by line, so that errors name the line and memory stays small."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, TypeVar

import ijson
import msgspec

from linklab.traces.lines import MAX_LINE_BYTES
from linklab.traces.trace import TraceError

_MAX_DEPTH: Final = 64
"""Measurements nest some levels. The parser's memory grows with the square of the depth."""

T = TypeVar("T")


class Feed:
    """Reads a file in lines, or in parts of long ones.

    Attributes:
        name: names the file in errors.
        number: number of the last line read, from 1.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name
        self.number = 0
        self._ahead: bytes | None = None

    def first(self) -> bytes:
        """Returns the first line; `read` returns it again."""
        self._ahead = self._file.readline(MAX_LINE_BYTES).removeprefix(codecs.BOM_UTF8)
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        """Returns the next line, or a part of it."""
        if size == 0:
            return b""
        line = self._ahead if self._ahead is not None else self._file.readline(MAX_LINE_BYTES)
        self._ahead = None
        self.number += bool(line)
        return line

    def is_at_end(self) -> bool:
        """Tells whether the last line read is the end of the file."""
        if self._ahead is None:
            self._ahead = self._file.readline(MAX_LINE_BYTES)
        return not self._ahead

    def error(self, reason: str) -> TraceError:
        """Returns the error for the last line read."""
        return TraceError(f"{self.name}:{max(self.number, 1)}: {reason}")

    def too_deep(self, allowed: str) -> TraceError:
        """Returns the error for a file that is nested too deeply."""
        return self.error(f"is nested too deeply; allowed: {allowed}")

    def events(self, allowed: str) -> Iterator[tuple[str, Any]]:
        """Yields the parser's events. Raises TraceError for a file that is nested too deeply, and
        ijson.JSONError."""
        depth = 0
        for event, value in ijson.basic_parse(self, use_float=True):
            if event in ("start_map", "start_array"):
                depth += 1
                if depth > _MAX_DEPTH:
                    raise self.too_deep(allowed)
            elif event in ("end_map", "end_array"):
                depth -= 1
            yield event, value


def converted(feed: Feed, value: Any, kind: type[T], tool: str, allowed: str) -> T:
    """Converts a parsed value to the type `kind`. Raises TraceError if `tool` does not write that."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise feed.error(f"not what {tool} writes: {error}; allowed: {allowed}") from error


def reason(error: Exception) -> str:
    """Returns the first line of the parser's message, which may be bytes."""
    text = error.args[0] if error.args else ""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return text.partition("\n")[0].strip().rstrip(".")
