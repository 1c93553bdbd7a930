"""Makes long samples of regular tables in linklab's own form, a block of lines at a time.

24 h in steps of 1 ms are 86 million lines. `plain` reads some 200 thousand lines in a second, and this
module ten times as many. It only reads what needs no judgement: numbers apart by commas, in order of
time. For any other file it returns None, and `plain` reads, mends or refuses it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np

from linklab.core.errors import LinklabError
from linklab.core.limits import MAX_RATE_BPS, MAX_RTT_S
from linklab.importers.opening import opened
from linklab.traces import plain
from linklab.traces.lines import MAX_LINE_BYTES, Lines
from linklab.traces.trace import (
    MAX_LENGTH_NS,
    MAX_SAMPLES,
    MIN_SAMPLE_NS,
    NS_PER_S,
    TraceError,
    TraceFile,
    TraceSample,
)

_BLOCK_BYTES: Final = 1 << 22
_REGULAR: Final = b"0123456789.,\n"
_COMMA, _NEWLINE = b",\n"
_TAIL_BYTES: Final = 200

_EXACT_S: Final = 2**53 / NS_PER_S
"""Up to here a float of seconds tells nanoseconds."""

_MOST: Final = {
    "down_mbit": MAX_RATE_BPS / 1e6,
    "up_mbit": MAX_RATE_BPS / 1e6,
    "rtt_ms": MAX_RTT_S * 1e3,
    "loss": 1.0,
}


class _IrregularError(LinklabError):
    """The file needs judgement."""


def read(path: Path, bin_ns: int) -> TraceFile | None:
    """Reads a file in samples of `bin_ns`; None if it is not regular."""
    try:
        with ExitStack() as open_files:
            file = opened(path, open_files)
            lines = Lines(file, str(path))
            table, comments = plain.begin(lines)
            means = _Means(table.names, bin_ns)
            rest = b""
            while block := file.read(_BLOCK_BYTES):
                text = (rest + block).replace(b"\r\n", b"\n")
                body, mark, tail = text.partition(b"#")
                if mark:
                    means.add(body)
                    tail += file.read(_TAIL_BYTES)
                    return means.trace(comments, plain.end_ns(lines, f"#{tail.decode()}".strip()))
                whole, newline, rest = text.rpartition(b"\n")
                if len(rest) > MAX_LINE_BYTES:
                    raise _IrregularError
                means.add(whole + newline)
            means.add(rest + b"\n" if rest else b"")
            return means.trace(comments, None)
    except (_IrregularError, TraceError, UnicodeDecodeError):
        return None


class _Means:
    """Adds up blocks of lines.

    The integrals of the values over time are kept per bin. The last line's length is not known yet.
    """

    def __init__(self, names: list[str], bin_ns: int) -> None:
        if "t" not in names or len(names) < 2:
            raise _IrregularError
        self._columns = [name for name in names if name != "t"]
        self._names = names
        self._bin_ns = bin_ns
        self._first_ns: int | None = None
        self._last_ns = self._length_ns = 0
        self._last: Any = None
        self._done: list[Any] = []
        self._begun = 0

    def add(self, block: bytes) -> None:
        """Adds whole lines. Raises _IrregularError."""
        if not block:
            return
        rows = _numbers(block, len(self._names))
        at = self._names.index("t")
        values = np.delete(rows, at, axis=1)
        limits = np.array([_MOST[name] for name in self._columns])
        if rows[:, at].max() > _EXACT_S or (values > limits).any():
            raise _IrregularError
        times_ns = np.rint(rows[:, at] * NS_PER_S).astype(np.int64)
        if self._first_ns is None:
            self._first_ns = int(times_ns[0])
        times_ns -= self._first_ns
        if self._last is not None:
            times_ns = np.concatenate(([self._last_ns], times_ns))
            values = np.vstack((self._last, values))
        self._last_ns, self._last = int(times_ns[-1]), values[-1]
        if len(times_ns) > 1:
            self._length_ns = int(times_ns[-1] - times_ns[-2])
            self._integrate(times_ns, values[:-1])

    def _integrate(self, times_ns: Any, values: Any) -> None:
        """Adds values, of which each holds from its time to the next one."""
        lengths_ns = np.diff(times_ns)
        if lengths_ns.min() < MIN_SAMPLE_NS or times_ns[-1] > MAX_LENGTH_NS:
            raise _IrregularError
        first, last = int(times_ns[0]) // self._bin_ns, -(-int(times_ns[-1]) // self._bin_ns)
        if last > MAX_SAMPLES:
            raise _IrregularError
        edges = np.clip(np.arange(first, last + 1) * self._bin_ns, times_ns[0], times_ns[-1])
        parts = np.empty((last - first, values.shape[1]))
        for index in range(values.shape[1]):
            total = np.concatenate(([0.0], np.cumsum(values[:, index] * lengths_ns)))
            parts[:, index] = np.diff(np.interp(edges, times_ns, total))
        if self._done and first < self._begun:
            self._done[-1][-1] += parts[0]
            parts = parts[1:]
        if len(parts):
            self._done.append(parts)
        self._begun = last

    def trace(self, comments: list[str], end_ns: int | None) -> TraceFile:
        """Returns the trace. Raises _IrregularError if it has no length."""
        if self._last is None or self._first_ns is None:
            raise _IrregularError
        end_ns = self._last_ns + self._length_ns if end_ns is None else end_ns - self._first_ns
        self._integrate(np.array([self._last_ns, end_ns]), self._last[np.newaxis, :])
        columns = frozenset(key for key, name in plain.COLUMNS.items() if name in self._columns)
        has_rates = "down_mbit" in self._columns
        return TraceFile(self._samples(end_ns), columns, comments, has_rates=has_rates)

    def _samples(self, end_ns: int) -> Iterator[TraceSample]:
        begin_ns = 0
        for parts in self._done:
            for sums in parts:
                length_ns = min(self._bin_ns, end_ns - begin_ns)
                begin_ns += length_ns
                if length_ns < MIN_SAMPLE_NS:
                    continue
                means = dict(zip(self._columns, (sums / length_ns).tolist(), strict=True))
                down, up = means.get("down_mbit"), means.get("up_mbit")
                rtt_ms, loss = means.get("rtt_ms"), means.get("loss")
                yield TraceSample(
                    length_ns,
                    None if down is None else round(down * 1e6),
                    None if up is None else round(up * 1e6),
                    None if rtt_ms is None else rtt_ms / 1e3,
                    None if loss is None else min(loss, 1.0),
                )


def _numbers(block: bytes, columns: int) -> Any:
    """Returns the numbers of whole lines, a row for each. Raises _IrregularError."""
    if block.translate(None, _REGULAR):
        raise _IrregularError
    marks = np.frombuffer(block, np.uint8)
    marks = marks[(marks == _COMMA) | (marks == _NEWLINE)]
    if len(marks) % columns:
        raise _IrregularError
    marks = marks.reshape(-1, columns)
    if (marks[:, -1] != _NEWLINE).any() or (marks[:, :-1] != _COMMA).any():
        raise _IrregularError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.fromstring(block.replace(b"\n", b",").decode(), sep=",")
    except (DeprecationWarning, ValueError) as error:
        raise _IrregularError from error
    if numbers.size != marks.size:
        raise _IrregularError
    return numbers.reshape(-1, columns)
