"""Reads iperf3's JSON: the bytes of a field measurement, interval by interval.

It reads `iperf3 -J` (one document) and `--json-stream` (a line per event) of client and server, TCP
and UDP, `-R` and `--bidir`, with any number of streams. The rate of an interval is the sum of its
streams' bytes divided by seconds. It does not use `sum`, because iperf3 3.7 writes two of that name
for `--bidir` (esnet/iperf issue 952).

Intervals omitted by `-O` are left out. If the omitted time ends within an interval, only the rest
counts (`_in_measured_time`).

iperf3 counts payload, but a lab's link counts frames of up to 1514 bytes. So rates are multiplied by
frame size / payload size, and iperf3 in the lab measures the original rates. `device` is the end
that was the phone, and decides which direction is down; the default is iperf3's client. For streams
that the file's own end sent, rates are those of its socket, not of arrivals.

A file holds one test with consecutive intervals. A second test, a repeated interval or a missing one
is refused, because the rates would be wrong. A stream of events that is cut off is read up to its last
complete interval.

Losses of UDP are left out: they are those of the queue of iperf3's own load, which the lab makes itself.
"""

from __future__ import annotations

import codecs
import itertools
import math
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Final, TypeVar

import msgspec

from linklab.core.frames import (
    ETHERNET_BYTES,
    IPV4_BYTES,
    MTU_BYTES,
    UDP_BYTES,
)
from linklab.core.limits import MAX_RATE_BPS
from linklab.importers.cells import FRAMES_PER_PAYLOAD
from linklab.importers.format import Format
from linklab.traces.lines import MAX_LINE_BYTES
from linklab.traces.trace import (
    MAX_LENGTH_NS,
    MAX_LENGTH_S,
    MIN_SAMPLE_NS,
    NS_PER_S,
    TraceError,
    TraceFile,
    TraceSample,
)

_ALLOWED: Final = "the output of iperf3 -J"

_MAX_BYTES: Final = 1 << 26
"""The most that is read of a document, which msgspec decodes at once: some hours of a test."""

_ROUNDED_S: Final = 0.001
"""The tolerance for rounded times of iperf3's intervals."""

_MAX_COUNT = 2**53
_Count = Annotated[int, msgspec.Meta(ge=-_MAX_COUNT, le=_MAX_COUNT)]

T = TypeVar("T")


class _Stream(msgspec.Struct):
    bytes: _Count
    seconds: float
    omitted: bool = False
    sender: bool | None = None
    rtt: _Count = 0
    start: float | None = None
    end: float | None = None


class _Interval(msgspec.Struct):
    streams: list[_Stream]


class _TestStart(msgspec.Struct):
    protocol: str
    blksize: _Count = 0
    reverse: int = 0


class _Start(msgspec.Struct):
    test_start: _TestStart
    accepted_connection: Any = None


class _Event(msgspec.Struct):
    event: str
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Document(msgspec.Struct):
    start: _Start | None = None
    intervals: list[_Interval] = []
    error: str = ""


class _Reader:
    """Reads the relevant parts of a file, in order: ("start" | "interval" | "error" | "end", value).

    After the last part, `is_truncated` tells whether the file ends within a test.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._where = name
        self.is_truncated = False

    def error(self, reason: str) -> TraceError:
        """Returns the error for the part that was read last."""
        return TraceError(f"{self._where}: {reason}")

    def parts(self) -> Iterator[tuple[str, Any]]:
        first = self._file.readline(MAX_LINE_BYTES).removeprefix(codecs.BOM_UTF8)
        try:
            msgspec.json.decode(first, type=_Event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._document(first)
        return self._events(first)

    def _decoded(self, content: bytes | msgspec.Raw, kind: type[T]) -> T:
        """Decodes a part. Raises TraceError."""
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if "trailing characters" in str(error):
                raise self.second_test() from error
            raise self.error(f"not what iperf3 writes: {error}; allowed: {_ALLOWED}") from error

    def _events(self, line: bytes) -> Iterator[tuple[str, Any]]:
        kinds: dict[str, Any] = {"start": _Start, "interval": _Interval}
        last, number = "", 0
        while line:
            number += 1
            self._where = f"{self._name}:{number}"
            following = self._file.readline(MAX_LINE_BYTES)
            if line.strip():
                try:
                    event = self._decoded(line, _Event)
                except TraceError:
                    if last == "interval" and not following and not line.endswith(b"\n"):
                        break
                    raise
                last = event.event
                yield last, self._decoded(event.data, kinds.get(last, object))
            line = following
        self.is_truncated = last == "interval"

    def _document(self, first: bytes) -> Iterator[tuple[str, Any]]:
        content = first + self._file.read(_MAX_BYTES + 1 - len(first))
        if len(content) > _MAX_BYTES:
            raise self.error(
                f"is longer than {_MAX_BYTES >> 20} MiB; allowed: the output of --json-stream"
            )
        if not content.strip():
            raise self.error(f"the file is empty; needed: {_ALLOWED}")
        document = self._decoded(content, _Document)
        if document.start is not None:
            yield "start", document.start
        for number, interval in enumerate(document.intervals):
            self._where = f"{self._name}: intervals[{number}]"
            yield "interval", interval
        if document.error:
            yield "error", document.error

    def second_test(self) -> TraceError:
        return self.error(
            "something follows the first test; allowed: one test in a file, so split it"
        )


def read(file: BinaryIO, name: str, device: str = "client", *, only_up: bool = False) -> TraceFile:
    """Reads the trace, one sample per interval. `device` is one of `ENDS`.

    With `only_up` the recording may have only an uplink; its downlink is then zero. Raises
    TraceError.
    """
    parts = _Reader(file, name)
    reading = _Reading(parts, device, only_up)
    samples = reading.samples()
    first = next(samples, None)
    if first is None:
        raise parts.error("no interval was measured; needed: at least one")
    values = {"up": first.up_bps, "rtt": first.rtt_s}
    return TraceFile(
        samples=itertools.chain([first], samples),
        columns=frozenset(key for key, value in values.items() if value is not None),
        comments=reading.comments,
        notes=reading.notes,
    )


class _Reading:
    """One pass over the intervals of a file."""

    def __init__(self, reader: _Reader, device: str, only_up: bool) -> None:
        self._reader = reader
        self._only_up = only_up
        self._parts = reader.parts()
        self._end_s: float | None = None
        self._has_ended = False
        self.notes: list[str] = []
        self.comments: list[str] = []
        self._start = self._read_start()
        test = self._start.test_start
        self._by_client = self._start.accepted_connection is None
        self._frames = _frames_per_payload(reader, test)
        self._down_is_received = self._by_client == (device == "client")
        end = "client" if self._by_client else "server"
        self.comments.append(
            f"written by the {end} of {test.protocol}, the phone was the {device}, "
            f"payload x {self._frames:.4f} for whole frames"
        )

    def _read_start(self) -> _Start:
        for kind, value in self._parts:
            if kind == "error":
                self._failed(value)
            if isinstance(value, _Start):
                return value
            break
        raise self._reader.error("'start' is missing; needed: the output of iperf3 -J")

    def _failed(self, value: Any) -> None:
        text = value if isinstance(value, str) else str(value)
        raise self._reader.error(f"iperf3 measured nothing: {text}")

    def samples(self) -> Iterator[TraceSample]:
        """Yields a sample for every interval that was not omitted."""
        told = False
        total_ns = 0
        for kind, value in self._parts:
            if kind == "error":
                if not total_ns:
                    self._failed(value)
                self.notes.append(f"iperf3 broke off: {value}")
            if kind == "start" or (kind != "error" and self._has_ended):
                raise self._reader.second_test()
            self._has_ended |= kind == "end"
            if kind != "interval":
                continue
            streams = list(map(_in_measured_time, value.streams))
            if not streams or any(stream.omitted for stream in streams):
                continue
            self._check_order(streams[0])
            if streams[0].seconds * NS_PER_S < MIN_SAMPLE_NS and streams[0].seconds >= 0:
                continue  # iperf3 may end with an interval that is too short for a sample.
            sample = self._sample(streams)
            total_ns += sample.length_ns
            if total_ns > MAX_LENGTH_NS:
                raise self._too_long()
            if not told:
                told = True
                self._tell(streams)
            yield sample
        if self._reader.is_truncated:
            self.notes.append("the file is cut off: it is read up to its last whole interval")

    def _check_order(self, stream: _Stream) -> None:
        """Raises TraceError if an interval does not begin at the end of the one before."""
        begin_s, before_s = stream.start, self._end_s
        if begin_s is not None:
            self._end_s = begin_s + stream.seconds if stream.end is None else stream.end
            if before_s is not None and not abs(begin_s - before_s) <= stream.seconds / 2:
                raise self._reader.error(
                    f"an interval begins at {begin_s:.6g} s, and the one before it ended at "
                    f"{before_s:.6g} s; allowed: one after another, with none missing"
                )

    def _tell(self, streams: list[_Stream]) -> None:
        """Notes that rates of a direction that the file's own end sent are those of its socket."""
        if any(self._sent(stream) for stream in streams):
            way = "uplink" if self._down_is_received else "downlink"
            other = "server" if self._by_client else "client"
            self.notes.append(
                f"the {way} is what was sent, not what arrived: the {other}'s JSON has that"
            )

    def _sent(self, stream: _Stream) -> bool:
        """Tells whether this end sent the stream. Old files only say it for the whole test."""
        if stream.sender is not None:
            return stream.sender
        return bool(self._start.test_start.reverse) != self._by_client

    def _sample(self, streams: list[_Stream]) -> TraceSample:
        for stream in streams:
            if not (math.isfinite(stream.seconds) and stream.seconds >= 0 and stream.bytes >= 0):
                raise self._reader.error(
                    f"an interval of {stream.bytes} bytes in {stream.seconds} s; "
                    "allowed: not negative"
                )
            if stream.seconds > MAX_LENGTH_S:
                raise self._too_long()
        down = [stream for stream in streams if self._sent(stream) != self._down_is_received]
        up = [stream for stream in streams if self._sent(stream) == self._down_is_received]
        if not down and not self._only_up:
            raise self._reader.error(
                "only the uplink was measured; allowed: a recording with -R or --bidir, or "
                "of iperf3 on a phone as the server, with device 'server'"
            )
        if not up and self._only_up:
            raise self._reader.error(
                "only the downlink was measured; allowed as the uplink: one without -R"
            )
        length_ns = round(streams[0].seconds * NS_PER_S)
        down_bps, up_bps = self._rate_bps(down), self._rate_bps(up)
        highest_bps = max(down_bps, up_bps)
        if highest_bps > MAX_RATE_BPS:
            raise self._reader.error(
                f"an interval of {highest_bps / 1e6:.7g} Mbit/s; "
                f"allowed: up to {MAX_RATE_BPS // 10**6} Mbit/s"
            )
        return TraceSample(
            length_ns=length_ns,
            down_bps=round(down_bps),
            up_bps=round(up_bps) if up else None,
            rtt_s=_rtt_s(streams),
        )

    def _too_long(self) -> TraceError:
        return self._reader.error(f"the recording is too long; allowed: up to {MAX_LENGTH_S} s")

    def _rate_bps(self, streams: list[_Stream]) -> float:
        payload = sum(stream.bytes * 8 / stream.seconds for stream in streams if stream.seconds)
        return payload * self._frames


def _in_measured_time(stream: _Stream) -> _Stream:
    """Returns the stream without omitted time that ended within the interval.

    iperf3 (3.12) then sets bytes and clock to 0, but counts `seconds` from the interval's start.
    """
    if stream.start is None or stream.end is None:
        return stream
    omitted_s = stream.start + stream.seconds - stream.end
    is_reset = stream.end > 0 and omitted_s > _ROUNDED_S
    return msgspec.structs.replace(stream, seconds=stream.end) if is_reset else stream


def _frames_per_payload(reader: _Reader, test: _TestStart) -> float:
    """Returns the bytes of Ethernet frames per byte that iperf3 counts."""
    if test.protocol == "TCP":
        return FRAMES_PER_PAYLOAD
    if test.protocol == "UDP" and test.blksize > 0:
        fragments = math.ceil((test.blksize + UDP_BYTES) / (MTU_BYTES - IPV4_BYTES))
        headers = UDP_BYTES + fragments * (IPV4_BYTES + ETHERNET_BYTES)
        return (test.blksize + headers) / test.blksize
    raise reader.error(f"a test of {test.protocol} is of no use here; allowed: TCP, UDP")


def _rtt_s(streams: list[_Stream]) -> float | None:
    """Returns the mean RTT of the TCP streams that this end sent. Only they know it."""
    rtts = [stream.rtt for stream in streams if stream.rtt > 0]
    return sum(rtts) / len(rtts) / 1e6 if rtts else None


FORMAT: Final = Format(
    name="iperf3",
    looks="the output of iperf3 -J or --json-stream",
    begins=lambda line: line.startswith("{"),
    read=lambda file, name, options, only_up: read(
        file, name, options.device or "client", only_up=only_up
    ),
    # iperf3's RTT includes the queue of its own load. The lab makes that queue itself.
    keeps=frozenset({"up"}),
    takes=frozenset({"uplink", "device"}),
)
