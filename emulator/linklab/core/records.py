"""The time series of a run directory: each line a record, written and read as the same type.

Fields stand in a line in the order in which they stand here. A field that older runs lack has a
default, so that their lines are still read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec

from linklab.core import plain_file
from linklab.core.link_state import LinkState


@dataclass(frozen=True, kw_only=True)
class _Applied:
    """When something was applied to which link: what begins a line of `links.jsonl`."""

    t_s: float
    late_s: float
    link: Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord(LinkState, _Applied):
    """A line of `links.jsonl`: a link's state as applied, `late_s` after its time."""

    @classmethod
    def of(cls, state: LinkState, *, t_s: float, late_s: float, link: str) -> LinkRecord:
        """The line that says that a link is in this state now."""
        return cls(t_s=t_s, late_s=late_s, link=link, **asdict(state))


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `queues.jsonl`: the counters of one direction of a link.

    `late_s` is by how much the sample came after its time, 0 in runs that do not say.
    """

    t_s: float
    late_s: float = 0.0
    link: str
    direction: str
    sent_bytes: int
    queue_bytes: int
    dropped_packets: int
    lost_packets: int


class EventRecord(msgspec.Struct, frozen=True):
    """A line of `events.jsonl`: something that happened, to a link or ("") to the lab."""

    t_s: float
    link: str
    kind: str
    detail: str = ""


class ClientRecord(msgspec.Struct, frozen=True, rename={"from_link": "from"}):
    """A line of multilink's `client.jsonl` (client/README.md); fields that its event lacks are 0."""

    t_ns: int
    event: str
    link: str = ""
    id: int = 0
    offset: int = 0
    length: int = 0
    from_link: str | None = None
    rate_bps: float = 0.0
    bytes: int = 0
    wasted_bytes: int = 0
    outcome: str = ""
    error: str = ""
    received_bytes: int = 0
    throughput_bps: float = 0.0
    rtt_ns: int = 0
    min_rtt_ns: int = 0
    in_flight: int = 0
    resumed_bytes: int = 0
    tcp_ns: int = 0
    tls_ns: int = 0
    reason: str = ""
    segments: int = 0
    out_of_order: int = 0

    @property
    def t_s(self) -> float:
        """Seconds since the client began, which is when the scenario began or `shift_s` later."""
        return self.t_ns / 1e9


class MachineRecord(msgspec.Struct, frozen=True):
    """A line of `machine.jsonl`, which only live runs have: how busy the emulator's core was in
    the second before, 0 idle to 1 no time left."""

    t_s: float
    busy_ratio: float


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `processes.jsonl`, which only runs on the real clock have: what a process has used
    so far. `process` is `client` or `server`; `cpu_s` its processor time since it began, in user
    and system, with that of the children that it has waited for; `rss_bytes` the memory that it
    occupies, None once it has ended."""

    t_s: float
    process: str
    cpu_s: float
    rss_bytes: int | None


class SubflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `subflows.jsonl`, which only runs over Multipath TCP have: a subflow at the client's
    end, `t_s` the run's end. `connection` says of which connection of Multipath TCP (its token),
    `endpoint` from which of the client's (0: the connection's first subflow). The bytes are what TCP
    has carried over it, TLS and what came over two subflows included, each byte once (`sent_bytes`
    has one more, for the handshake);
    None where the kernel no longer told."""

    t_s: float
    link: str
    connection: int
    endpoint: int
    port: int
    state: Literal["open", "backup", "closed"]
    received_bytes: int | None = None
    sent_bytes: int | None = None
    retransmitted_segments: int | None = None
    rtt_s: float | None = None


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


class RecordError(ValueError):
    """A line of a run directory is no record; the message says which and why."""


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
                text = file.read()
        except FileNotFoundError:
            return []
        written = text.partition(b"\0")[0]
        whole = written[: written.rfind(b"\n") + 1]
        self._offset += len(whole)
        records = []
        for line in whole.splitlines():
            self._lines += 1
            try:
                records.append(self._decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise RecordError(f"{self._path}:{self._lines}: {error}") from error
        return records


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
