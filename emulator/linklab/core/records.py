"""The time series of a run directory as records, read whole or while they are being written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import msgspec

from linklab.core import plain_file
from linklab.core.link_state import LinkState


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord(LinkState):
    """A line of `links.jsonl`: a link's state as applied."""

    t_s: float
    late_s: float
    link: Annotated[str, msgspec.Meta(min_length=1)]


class QueueRecord(msgspec.Struct, frozen=True):
    """A line of `queues.jsonl`: the counters of one direction of a link.

    `late_s` is by how much the sample came after its time, 0 in runs that do not say.
    """

    t_s: float
    link: str
    direction: str
    sent_bytes: int
    queue_bytes: int
    dropped_packets: int
    lost_packets: int
    late_s: float = 0.0


class EventRecord(msgspec.Struct, frozen=True):
    """A line of `events.jsonl`: something that happened, to a link or ("") to the lab."""

    t_s: float
    link: str
    kind: str


class ClientRecord(msgspec.Struct, frozen=True):
    """A line of multilink's `client.jsonl` (client/README.md); fields that its event lacks are 0."""

    t_ns: int
    event: str
    link: str = ""
    length: int = 0
    bytes: int = 0
    wasted_bytes: int = 0
    received_bytes: int = 0
    rtt_ns: int = 0
    resumed_bytes: int = 0

    @property
    def t_s(self) -> float:
        """Seconds since the client began, which is when the scenario began or `shift_s` later."""
        return self.t_ns / 1e9


class MachineRecord(msgspec.Struct, frozen=True):
    """A line of `machine.jsonl`, which only live runs have: how busy the emulator's core was in
    the second before, 0 idle to 1 no time left."""

    t_s: float
    busy_ratio: float


Record = LinkRecord | QueueRecord | EventRecord | ClientRecord | MachineRecord
R = TypeVar("R")

MACHINE_FILE = "machine.jsonl"

FILES: dict[str, type[Record]] = {
    "links.jsonl": LinkRecord,
    "queues.jsonl": QueueRecord,
    "events.jsonl": EventRecord,
    "client.jsonl": ClientRecord,
    MACHINE_FILE: MachineRecord,
}
"""Where each kind of record stands."""


class RecordError(ValueError):
    """A line of a run directory is no record; the message says which and why."""


class Tail(Generic[R]):
    """A file of JSON lines that may still grow; the guest that writes it is behind a file system
    that shows whole pages late, so a line counts once all of it is there."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
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
        self._tails = [Tail(run_dir / name, kind) for name, kind in FILES.items()]
        self._shift_s = shift_s

    def read(self) -> list[tuple[float, Record]]:
        """What is new, each with its time in seconds since the scenario began, in that order."""
        found: list[tuple[float, Record]] = []
        for tail in self._tails:
            for record in tail.read():
                shift_s = self._shift_s if isinstance(record, ClientRecord) else 0.0
                found.append((record.t_s + shift_s, record))
        return sorted(found, key=lambda one: one[0])


def read_all(run_dir: Path, shift_s: float = 0.0) -> Iterator[tuple[float, Record]]:
    """Every record of a finished run in the order of time. Raises RecordError."""
    yield from Follower(run_dir, shift_s).read()
