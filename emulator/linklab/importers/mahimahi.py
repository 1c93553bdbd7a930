"""Reads Mahimahi's traces: each line is a millisecond in which one packet may pass.

A line holds a whole number of milliseconds, not less than the line before. Equal lines are several
packets in one millisecond. Unused opportunities are lost. At the last timestamp the trace starts
again (Netravali et al., USENIX ATC 2015; mahimahi's `mm-link`). Uplink and downlink are separate
files.

A link of the lab has a rate instead of opportunities, so these are counted in bins. A timestamp ends
its millisecond. So bin k holds the timestamps after k·b ms and up to (k+1)·b ms. If a trace begins
with 0, its first bin also holds these. The last bin ends at the last timestamp. If it is shorter
than half a bin, it is joined to the bin before.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Iterator
from typing import BinaryIO, Final

from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import MAX_RATE_BPS
from linklab.importers.format import Format
from linklab.traces.lines import MAX_LINE_BYTES, TRUNCATED, quoted
from linklab.traces.trace import MAX_LENGTH_NS, TraceError, TraceFile, TraceSample

OPPORTUNITY_BYTES: Final = FRAME_BYTES
"""The bytes of one line: a full packet of 1500 bytes with an Ethernet header of 14, as a lab's link
counts it. Mahimahi counts 1504, with the 4 bytes of its TUN device's header (`PACKET_SIZE` in
link_queue.cc). With 1504 an opportunity would not carry a full packet: a link would be 0.66 % slow,
and in a quiet time no packet would pass."""

BIN_MS: Final = 100

_NS_PER_MS = 1_000_000
_MAX_MS = MAX_LENGTH_NS // _NS_PER_MS
_MAX_DIGITS = 1000
_ALLOWED = f"one whole number of milliseconds per line, up to {_MAX_MS}"


def read(
    file: BinaryIO,
    name: str,
    bin_ms: int = BIN_MS,
    opportunity_bytes: int = OPPORTUNITY_BYTES,
) -> TraceFile:
    """Reads the trace in bins of `bin_ms`. Every opportunity counts once. Raises TraceError."""
    comments = [f"bins of {bin_ms} ms, {opportunity_bytes} bytes per opportunity"]
    recording = TraceFile(iter(()), frozenset(), comments)
    times_ms = _timestamps(file, name, recording.notes)
    recording.samples = _samples(times_ms, name, bin_ms, opportunity_bytes)
    return recording


def _samples(
    times_ms: Iterator[list[int]], name: str, bin_ms: int, opportunity_bytes: int
) -> Iterator[TraceSample]:
    for length_ms, count in _joined(_counts(times_ms, name, bin_ms), bin_ms):
        bits = count * opportunity_bytes * 8
        rate_bps = round(bits * 1000 / length_ms)
        if rate_bps > MAX_RATE_BPS:
            raise TraceError(
                f"{name}: {count} opportunities in {length_ms} ms are {rate_bps / 1e6:.0f} Mbit/s; "
                f"allowed: up to {MAX_RATE_BPS // 10**6} Mbit/s"
            )
        yield TraceSample(length_ms * _NS_PER_MS, rate_bps)


def _counts(blocks: Iterator[list[int]], name: str, bin_ms: int) -> Iterator[tuple[int, int]]:
    """Yields the length in ms and the number of opportunities of each bin."""
    begin_ms = count = last_ms = 0
    for times_ms in blocks:
        position = 0
        while True:
            stop = bisect_right(times_ms, begin_ms + bin_ms, position)
            count += stop - position
            position = stop
            if position == len(times_ms):
                break
            yield bin_ms, count
            begin_ms, count = begin_ms + bin_ms, 0
        last_ms = times_ms[-1]
    if last_ms == 0:
        raise TraceError(
            f"{name}: the last timestamp is 0, so that the trace lasts for no time; "
            "allowed: a last timestamp of at least 1"
        )
    yield last_ms - begin_ms, count


def _joined(counts: Iterator[tuple[int, int]], bin_ms: int) -> Iterator[tuple[int, int]]:
    """Joins a last bin of less than half the length to the one before."""
    length_ms, count = next(counts)
    for next_ms, next_count in counts:
        if 2 * next_ms < bin_ms:
            length_ms, count = length_ms + next_ms, count + next_count
        else:
            yield length_ms, count
            length_ms, count = next_ms, next_count
    yield length_ms, count


def _timestamps(file: BinaryIO, name: str, notes: list[str]) -> Iterator[list[int]]:
    """Yields the timestamps in order, many lines at a time, without a truncated last line."""
    number, last_ms = 1, 0
    for block in _blocks(file, name):
        is_truncated = not block.endswith(b"\n")
        try:
            times_ms = _parsed(block + b"\n" if is_truncated else block, name, number, last_ms)
        except TraceError:
            if not is_truncated or number == 1:
                raise
            notes.append(TRUNCATED)
            return
        number, last_ms = number + len(times_ms), times_ms[-1]
        yield times_ms
    if number == 1:
        raise TraceError(f"{name}:1: the file is empty; needed: {_ALLOWED}")


def _blocks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yields the file in blocks of whole lines, without a byte order mark, then an incomplete line."""
    rest = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    number = 1
    while chunk := file.read(MAX_LINE_BYTES):
        whole, newline, begun = chunk.rpartition(b"\n")
        if newline:
            block = rest + whole + newline
            yield block
            number, rest = number + block.count(b"\n"), begun
        else:
            rest += begun
        if len(rest) > MAX_LINE_BYTES:
            line = number + rest.count(b"\n")
            raise _error(name, line, "the line is too long", _ALLOWED)
    whole, newline, begun = rest.rpartition(b"\n")
    yield from filter(None, (whole + newline, begun))


def _parsed(block: bytes, name: str, number: int, last_ms: int) -> list[int]:
    """Returns the timestamps of a block of lines; `number` is that of the first line."""
    if not block.translate(None, b"0123456789\r\n"):
        words = block.split()
        if len(words) == block.count(b"\n") and len(max(words, key=len)) <= _MAX_DIGITS:
            times_ms = list(map(int, words))
            if times_ms[0] >= last_ms and times_ms[-1] <= _MAX_MS and times_ms == sorted(times_ms):
                return times_ms
    raise _diagnosis(block, name, number, last_ms)


def _diagnosis(block: bytes, name: str, number: int, last_ms: int) -> TraceError:
    """Returns the error of the first wrong line of a block."""
    for at, line in enumerate(block.split(b"\n")[:-1], number):
        text = line.removesuffix(b"\r").decode("utf-8", "replace")
        if not text:
            return _error(name, at, "is empty", _ALLOWED)
        if not (text.isascii() and text.isdigit()):
            return _error(
                name, at, f"{quoted(text)} is not a whole number of milliseconds", _ALLOWED
            )
        if len(text) > _MAX_DIGITS or int(text) > _MAX_MS:
            return _error(name, at, f"{quoted(text)} is too much", _ALLOWED)
        if int(text) < last_ms:
            return _error(
                name, at, f"{text} is less than {last_ms} before it", f"{last_ms} or more"
            )
        last_ms = int(text)
    raise AssertionError("no line is wrong")


def _error(name: str, number: int, reason: str, allowed: str) -> TraceError:
    return TraceError(f"{name}:{number}: {reason}; allowed: {allowed}")


FORMAT: Final = Format(
    name="mahimahi",
    looks="a millisecond per line",
    begins=lambda line: line.isascii() and line.isdigit(),
    read=lambda file, name, options, only_up: read(
        file,
        name,
        BIN_MS if options.bin_s is None else round(options.bin_s * 1000),
        options.opportunity_bytes or OPPORTUNITY_BYTES,
    ),
    keeps=frozenset({"up", "rtt"}),
    takes=frozenset({"uplink", "bin_s", "opportunity_bytes"}),
)
