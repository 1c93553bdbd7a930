"""The time series of a run directory: each line a record, written and read as the same type.

Fields stand in a line in the order in which they stand here. A field that older runs lack has a
default, so that their lines are still read. Others may have written the lines: what is beyond the
limits of the types (`bounded.py`) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, Literal, NoReturn, TypeVar

import msgspec

from linklab.core import plain_file
from linklab.core.bounded import (
    Bytes,
    Count,
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
    """When something was applied to which link: what begins a line of `links.jsonl`."""

    t_s: Seconds
    late_s: Lateness
    link: LinkName


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord(LinkState, _Applied):
    """A line of `links.jsonl`: a link's state as applied, `late_s` after its time."""

    @classmethod
    def of(cls, state: LinkState, *, t_s: float, late_s: float, link: str) -> LinkRecord:
        """The line that says that a link is in this state now."""
        return cls(t_s=t_s, late_s=late_s, link=link, **asdict(state))


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `queues.jsonl`: the counters of one direction of a link.

    `late_s` is by how much the sample came after its time, 0 in runs that do not say. `discipline`
    has what only the link's queue discipline counts, where that counts more than others.
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


class EventRecord(msgspec.Struct, frozen=True):
    """A line of `events.jsonl`: something that happened, to a link or ("") to the lab."""

    t_s: Seconds
    link: Name
    kind: Name
    detail: Words = ""


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
        """Seconds since the client began, which is when the scenario began or `shift_s` later."""
        return self.t_ns / 1e9


class MachineRecord(msgspec.Struct, frozen=True):
    """A line of `machine.jsonl`, which only live runs have: how busy the emulator's core was in
    the second before, 0 idle to 1 no time left."""

    t_s: Seconds
    busy_ratio: Figure


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `processes.jsonl`, which only runs on the real clock have: what a process has used
    so far. `process` is `client` or `server`; `cpu_s` its processor time since it began, in user
    and system, with that of the children that it has waited for; `rss_bytes` the memory that it
    occupies, None once it has ended."""

    t_s: Seconds
    process: Name
    cpu_s: Seconds
    rss_bytes: Bytes | None


class SubflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `subflows.jsonl`, which only runs over Multipath TCP have: a subflow at the client's
    end, `t_s` the run's end. `connection` says of which connection of Multipath TCP (its token),
    `endpoint` from which of the client's (0: the connection's first subflow). The bytes are what TCP
    has carried over it, TLS and what came over two subflows included, each byte once (`sent_bytes`
    has one more, for the handshake);
    None where the kernel no longer told."""

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


Record = (
    LinkRecord
    | QueueRecord
    | EventRecord
    | ClientRecord
    | MachineRecord
    | ProcessRecord
    | SubflowRecord
)
R = TypeVar("R", bound=Record)

FILES: Final[dict[type[Any], str]] = {
    LinkRecord: "links.jsonl",
    QueueRecord: "queues.jsonl",
    EventRecord: "events.jsonl",
    ClientRecord: "client.jsonl",
    MachineRecord: "machine.jsonl",
    ProcessRecord: "processes.jsonl",
    SubflowRecord: "subflows.jsonl",
}
"""Where in a run directory each kind of record stands."""


_encoder = msgspec.json.Encoder()


def line(record: Record) -> bytes:
    """The record as a line of its file."""
    return _encoder.encode(record) + b"\n"


MOST_BYTES: Final = 1 << 30
"""How large a file of lines may be."""

MOST_LINES: Final = 5_000_000
"""How many lines are read of one: what multilink writes in a day over two links."""

MOST_LINE_BYTES: Final = 1 << 20
"""How long a line may be."""

T = TypeVar("T")


class RecordError(OSError):
    """A file of a run directory is not what linklab writes; the message says where and why."""


def document(path: Path, kind: type[T]) -> T:
    """What a JSON file of a run directory holds. Raises RecordError, and OSError where it cannot be
    read."""
    return _decoded(f"{path}: cannot be read", plain_file.read(path), msgspec.json.Decoder(kind))


def first_line(path: Path, kind: type[T]) -> T:
    """What the first line of a file holds. Raises as `document`."""
    with plain_file.opened(path) as file:
        line = file.readline(MOST_LINE_BYTES)
    return _decoded(f"{path}:1", line, msgspec.json.Decoder(kind))


def _decoded(where: str, content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(content)
    except _NO_RECORD as error:
        raise RecordError(f"{where}: {str(error)[:_MOST_WORDS]}") from error


_MOST_WORDS: Final = 200
"""How many characters of what msgspec says are told: it quotes values."""

_NO_RECORD: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for content that is no such record."""


class Tail(Generic[R]):
    """The records of one kind in a run directory, which may still become more; the guest that
    writes them is behind a file system that shows whole pages late, so a line counts once all of
    it is there."""

    def __init__(self, run_dir: Path, kind: type[R]) -> None:
        self._path = run_dir / FILES[kind]
        self._decoder = msgspec.json.Decoder(kind)
        self._offset = 0
        self._lines = 0

    def read(self) -> list[R]:
        """What is new since the last call; nothing where there is no file. Raises RecordError."""
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
    """All time series of one run directory, followed while the run goes on.

    `shift_s` is by how much its client starts after the scenario.
    """

    def __init__(self, run_dir: Path, shift_s: float = 0.0) -> None:
        self._tails = [Tail(run_dir, kind) for kind in FILES]
        self._shift_s = shift_s

    def read(self) -> list[tuple[float, Record]]:
        """What is new, each with the time in seconds since the scenario began at which it happened,
        in that order: of a link's new state, when it was applied. What was noted at the same time
        stands before what links became of it."""
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
    """Every record of a finished run in the order of time. Raises RecordError."""
    yield from Follower(run_dir, shift_s).read()
