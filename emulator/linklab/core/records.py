"""Writes and reads the time series of a run directory; each line is a record of a type.

Fields stand in a line in the order of the type's attributes. Fields that older runs lack have a
default. The lines are untrusted, so values beyond the types' limits (`bounded.py`) are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Generic, Literal, NoReturn, TypeVar

import msgspec

from linklab.core import plain_file
from linklab.core.bounded import (
    Bytes,
    Count,
    Few,
    Figure,
    Lateness,
    LinkName,
    Name,
    Nanoseconds,
    Port,
    Rate,
    Seconds,
    Words,
)
from linklab.core.link_state import Direction, LinkState


@dataclass(frozen=True, kw_only=True)
class _Applied:
    """The first fields of a line of `links.jsonl`: when a state was applied, and to which link."""

    t_s: Seconds
    late_s: Lateness
    link: LinkName


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord(LinkState, _Applied):
    """A line of `links.jsonl`: a link's state as applied, `late_s` after its time."""

    @classmethod
    def of(cls, state: LinkState, *, t_s: float, late_s: float, link: str) -> LinkRecord:
        """Makes the record of a link that is in `state` now."""
        values = {field.name: getattr(state, field.name) for field in fields(LinkState)}
        return cls(t_s=t_s, late_s=late_s, link=link, **values)


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `queues.jsonl`: the counters of one direction of a link.

    `late_s` is the delay of the sample after its planned time; 0 in older runs. `discipline` has
    the counters that only the link's queue discipline keeps, if it keeps any.
    """

    t_s: Seconds
    late_s: Lateness = 0.0
    link: Name
    direction: Direction
    sent_bytes: Bytes
    queue_bytes: Bytes
    dropped_packets: Count
    lost_packets: Count
    discipline: dict[Name, Count] | msgspec.UnsetType = msgspec.UNSET


class SojournRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `sojourns.jsonl`, which only runs in a guest have: how long a link's packets waited.

    Attributes:
        t_s: end of the run.
        scalable: whether it is about packets with ECT(1) or CE (RFC 9331), or about all others.
        buckets: the numbers of packets by the bucket of `core/sojourns.py`, without empty buckets at
            the end.
    """

    t_s: Seconds
    link: LinkName
    direction: Direction
    scalable: bool
    buckets: Annotated[list[Count], Few]


class TrafficRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `traffic.jsonl`, which only runs with `traffic` have: what became of a flow.

    Attributes:
        flow: its number in the scenario, from 1.
        kind: `bulk`, `web` or `call`.
        from_s, to_s: its time in the run. Both are the end of a run that ended before the flow began.
        received_bytes: payload that came out at its receiver in that time.
        sent_packets, lost_packets: a call's. A packet is lost if it has not come when a later one has,
            or 5 s after it was sent.
        delay_p50_s, delay_p95_s, delay_p99_s: one-way delay of a call's packets, with what they waited.
        pages: pages that were complete.
        page_p50_s, page_p95_s, page_p99_s: their times.
    """

    t_s: Seconds
    flow: Count
    link: LinkName
    direction: Direction
    kind: Name
    from_s: Seconds
    to_s: Seconds
    received_bytes: Bytes
    sent_packets: Count | None = None
    lost_packets: Count | None = None
    delay_p50_s: Seconds | None = None
    delay_p95_s: Seconds | None = None
    delay_p99_s: Seconds | None = None
    pages: Count | None = None
    page_p50_s: Seconds | None = None
    page_p95_s: Seconds | None = None
    page_p99_s: Seconds | None = None


class EventRecord(msgspec.Struct, frozen=True):
    """A line of `events.jsonl`: an event of a link, or of the lab (link "").

    `command` is the line of `control.jsonl`, from 1, that asked for it.
    """

    t_s: Seconds
    link: Name
    kind: Name
    detail: Words = ""
    command: Count | msgspec.UnsetType = msgspec.UNSET


class ClientRecord(msgspec.Struct, frozen=True, rename={"from_link": "from"}):
    """A line of multilink's `client.jsonl` (handbook: client-files.md); fields that its event lacks are 0."""

    t_ns: Nanoseconds
    event: Name
    link: Name = ""
    id: Count = 0
    offset: Bytes = 0
    length: Bytes = 0
    from_link: Name | None = None
    rate_bps: Rate = 0.0
    bytes: Bytes = 0
    wasted_bytes: Bytes = 0
    outcome: Name = ""
    error: Words = ""
    received_bytes: Bytes = 0
    throughput_bps: Rate = 0.0
    rtt_ns: Nanoseconds = 0
    min_rtt_ns: Nanoseconds = 0
    in_flight: Count = 0
    resumed_bytes: Bytes = 0
    tcp_ns: Nanoseconds = 0
    tls_ns: Nanoseconds = 0
    reason: Words = ""
    segments: Count = 0
    out_of_order: Count = 0

    @property
    def t_s(self) -> float:
        """Seconds since the client started, which is `shift_s` after the scenario's start."""
        return self.t_ns / 1e9


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `requests.jsonl`: an HTTP request of a program other than multilink, as the lab's server
    saw it. Times are in seconds since the scenario's start. `first_byte_s` and `end_s` are those of
    the answer, as the server sent it, None if the connection broke before its end. Then `link` is
    "" if nothing else tells it. `range` is the request's header."""

    t_s: Seconds
    first_byte_s: Seconds | None
    end_s: Seconds | None
    link: Name
    request: Words
    status: Count
    bytes: Bytes
    range: Name | None


class MachineRecord(msgspec.Struct, frozen=True):
    """A line of `machine.jsonl`, which only live runs have.

    `busy_ratio` is the load of the emulator's core in the second before: 0 is idle, 1 is full.
    """

    t_s: Seconds
    busy_ratio: Figure


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `processes.jsonl`, which only runs on the real clock have.

    Attributes:
        process: `client` or `server`.
        cpu_s: its processor time so far, user and system, with the children it has waited for.
        rss_bytes: its resident memory; None after its end.
    """

    t_s: Seconds
    process: Name
    cpu_s: Seconds
    rss_bytes: Bytes | None


class SubflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `subflows.jsonl`, which only runs over Multipath TCP have: a subflow of the client.

    Attributes:
        t_s: end of the run.
        connection: token of its Multipath TCP connection.
        endpoint: the client's endpoint; 0 for the connection's first subflow.
        received_bytes, sent_bytes: TCP's bytes over the subflow, each once. They include TLS, and
            data that also came over another subflow. `sent_bytes` has 1 more for the handshake.
            None if the kernel no longer knew them.
    """

    t_s: Seconds
    link: Name
    connection: Count
    endpoint: Count
    port: Port
    state: Literal["open", "backup", "closed"]
    received_bytes: Bytes | None = None
    sent_bytes: Bytes | None = None
    retransmitted_segments: Count | None = None
    rtt_s: Seconds | None = None


class RoundTripRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `round-trips.jsonl`, which only runs with messages (`rounds`) have: a round trip of
    the client's TCP, from a segment it sent to the acknowledgement.

    Attributes:
        t_s: time of the acknowledgement.
        port: the client's port of the connection, or of the subflow.
        rtt_s: how long it took.
    """

    t_s: Seconds
    link: LinkName
    port: Port
    rtt_s: Seconds


class BurstRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `bursts.jsonl`, which only runs of a workload have: the TCP packets of all links with
    no long pause between them (`core/bursts.py`).

    Attributes:
        t_s: time of the first packet.
        length_s: time from the first packet to the last.
        first_byte_s: time from the first packet to the first that brought the client data. None if
            no packet did.
    """

    t_s: Seconds
    length_s: Seconds
    packets: Count
    first_byte_s: Seconds | None = None


Record = (
    LinkRecord
    | QueueRecord
    | SojournRecord
    | TrafficRecord
    | EventRecord
    | ClientRecord
    | RequestRecord
    | MachineRecord
    | ProcessRecord
    | SubflowRecord
    | RoundTripRecord
    | BurstRecord
)
R = TypeVar("R", bound=Record)

FILES: Final[dict[type[Any], str]] = {
    LinkRecord: "links.jsonl",
    QueueRecord: "queues.jsonl",
    SojournRecord: "sojourns.jsonl",
    TrafficRecord: "traffic.jsonl",
    EventRecord: "events.jsonl",
    ClientRecord: "client.jsonl",
    RequestRecord: "requests.jsonl",
    MachineRecord: "machine.jsonl",
    ProcessRecord: "processes.jsonl",
    SubflowRecord: "subflows.jsonl",
    RoundTripRecord: "round-trips.jsonl",
    BurstRecord: "bursts.jsonl",
}
"""The file of the run directory for each type of record."""


_encoder = msgspec.json.Encoder()


def line(record: Record) -> bytes:
    """Encodes a record as a line of its file."""
    return _encoder.encode(record) + b"\n"


MOST_BYTES: Final = 1 << 30
"""The largest size of a file of records."""

MOST_LINES: Final = 5_000_000
"""The largest number of lines. multilink writes that many in a day over two links."""

MOST_LINE_BYTES: Final = 1 << 20
"""The longest line."""

T = TypeVar("T")


class RecordError(OSError):
    """A file of a run directory has content that linklab does not write. The message says where."""


def document(path: Path, kind: type[T]) -> T:
    """Reads a JSON file of a run directory. Raises RecordError, and OSError if it cannot be read."""
    return _decoded(f"{path}: cannot be read", plain_file.read(path), msgspec.json.Decoder(kind))


def first_line(path: Path, kind: type[T]) -> T:
    """Reads the first line of a file. Raises as `document`."""
    with plain_file.opened(path) as file:
        line = file.readline(MOST_LINE_BYTES)
    return _decoded(f"{path}:1", line, msgspec.json.Decoder(kind))


def _decoded(where: str, content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(content)
    except _NO_RECORD as error:
        raise RecordError(f"{where}: {str(error)[:_MOST_WORDS]}") from error


_MOST_WORDS: Final = 200
"""The characters kept of msgspec's messages, because they quote values."""

_NO_RECORD: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that msgspec raises for other content."""


class Tail(Generic[R]):
    """Reads the records of one type while the file may still grow.

    The guest's file system writes whole pages late. So a line counts only when it is complete.
    """

    def __init__(self, run_dir: Path, kind: type[R]) -> None:
        self._path = run_dir / FILES[kind]
        self._decoder = msgspec.json.Decoder(kind)
        self._offset = 0
        self._lines = 0

    def read(self) -> list[R]:
        """Returns the new records since the last call; none without a file. Raises RecordError."""
        try:
            with plain_file.opened(self._path) as file:
                file.seek(self._offset)
                return [
                    _decoded(f"{self._path}:{self._lines}", line, self._decoder)
                    for line in self._whole_lines(file)
                ]
        except FileNotFoundError:
            return []

    def _whole_lines(self, file: BinaryIO) -> Iterator[bytes]:
        while True:
            line = file.readline(MOST_LINE_BYTES + 1)
            written = line.partition(b"\0")[0]
            if len(written) > MOST_LINE_BYTES:
                self._refuse(f"is too long for a line; allowed: {MOST_LINE_BYTES} bytes")
            if not written.endswith(b"\n"):
                return
            if self._lines == MOST_LINES:
                self._refuse(f"is one line too many; allowed: {MOST_LINES}")
            self._offset += len(written)
            if self._offset > MOST_BYTES:
                self._refuse(f"is beyond the largest size; allowed: {MOST_BYTES} bytes")
            self._lines += 1
            yield written

    def _refuse(self, problem: str) -> NoReturn:
        raise RecordError(f"{self._path}:{self._lines + 1}: {problem}")


class Follower:
    """Follows all time series of a run directory during the run.

    `shift_s` is the time from the scenario's start to the client's start.
    """

    def __init__(self, run_dir: Path, shift_s: float = 0.0) -> None:
        self._tails = [Tail(run_dir, kind) for kind in FILES]
        self._shift_s = shift_s

    def read(self) -> list[tuple[float, Record]]:
        """Returns the new records in order of time, each with its seconds since the scenario's start.

        A link's state has the time at which it was applied. At equal times, other records come
        before link states.
        """
        found = [
            (self._happened_s(record), record) for tail in self._tails for record in tail.read()
        ]
        return sorted(found, key=lambda one: (one[0], not isinstance(one[1], EventRecord)))

    def _happened_s(self, record: Record) -> float:
        match record:
            case ClientRecord():
                return record.t_s + self._shift_s
            case LinkRecord():
                return record.t_s + record.late_s
        return record.t_s


def read_all(run_dir: Path, shift_s: float = 0.0) -> Iterator[tuple[float, Record]]:
    """Yields all records of a finished run in order of time. Raises RecordError."""
    yield from Follower(run_dir, shift_s).read()
