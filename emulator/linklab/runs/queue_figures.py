"""Computes the figures of a run's queues: marks, drops by reason, sojourn times. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from linklab.core import sojourns
from linklab.core.bounded import ByName, Count, Seconds
from linklab.core.link_state import Direction
from linklab.core.records import QueueRecord, SojournRecord
from linklab.queues.discipline import DROPPED_ACKS, DROPPED_EARLY, DROPPED_FULL, MARKED


@dataclass(frozen=True, slots=True)
class Sojourn:
    """Holds how long the packets waited in a queue: the median, and 95 % and 99 % at most."""

    p50_s: Seconds
    p95_s: Seconds
    p99_s: Seconds


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """Holds the figures of one direction of a link.

    `dropped_packets` are all drops of the queue, `early_dropped_packets` those of its discipline's
    algorithm, `full_dropped_packets` the others: the queue was full, or an event made it smaller.
    `lost_packets` are those that the link lost. `marked_packets` got a mark of congestion (ECN CE).
    `sojourn` is of all packets, `scalable` of those with ECT(1) or CE. None if no packet waited, or
    outside a guest.
    """

    dropped_packets: Count
    early_dropped_packets: Count
    full_dropped_packets: Count
    lost_packets: Count
    marked_packets: Count
    sojourn: Sojourn | None = None
    scalable: Sojourn | None = None

    @property
    def words(self) -> str:
        """Describes the sojourn times, drops and marks."""
        waited = "nothing waited"
        if self.sojourn is not None:
            times = (f"{getattr(self.sojourn, key) * 1e3:.1f}" for key in Sojourn.__slots__)
            waited = f"waited {' '.join(times)} ms (p50 p95 p99)"
        marked = f", {self.marked_packets} marked" if self.marked_packets else ""
        return f"{waited}, {self.dropped_packets} dropped{marked}"

    def flat(self) -> dict[str, float]:
        """Returns all known figures by name."""
        found: dict[str, float] = {
            DROPPED: self.dropped_packets,
            DROPPED_EARLY: self.early_dropped_packets,
            DROPPED_FULL: self.full_dropped_packets,
            LOST: self.lost_packets,
            MARKED: self.marked_packets,
        }
        for name, one in (("sojourn", self.sojourn), ("scalable", self.scalable)):
            if one is not None:
                found |= {f"{name}_{key}": getattr(one, key) for key in one.__slots__}
        return found


DROPPED, LOST = "dropped_packets", "lost_packets"

NAMES: Final = (
    *(DROPPED, DROPPED_EARLY, DROPPED_FULL, LOST, MARKED),
    *(f"{kind}_{key}" for kind in ("sojourn", "scalable") for key in Sojourn.__slots__),
)
"""The names of all figures, as in tables and JSON."""


def of_records(
    queues: Sequence[QueueRecord], waits: Sequence[SojournRecord]
) -> ByName[ByName[QueueFigures]]:
    """Computes the figures of each link and direction from its last sample and its sojourn times."""
    last = {(one.link, one.direction): one for one in queues}
    found: dict[str, dict[str, QueueFigures]] = {}
    for (link, direction), record in last.items():
        found.setdefault(link, {})[direction] = _figures(record, _counts(waits, link, direction))
    return found


def _counts(
    waits: Sequence[SojournRecord], link: str, direction: Direction
) -> dict[bool, list[int]]:
    return {
        one.scalable: one.buckets for one in waits if (one.link, one.direction) == (link, direction)
    }


def _figures(record: QueueRecord, counts: dict[bool, list[int]]) -> QueueFigures:
    own: Mapping[str, int] = record.discipline or {}
    early = own.get(DROPPED_EARLY, 0) + own.get(DROPPED_ACKS, 0)
    every = [sum(pair) for pair in zip_longest(*counts.values(), fillvalue=0)]
    return QueueFigures(
        dropped_packets=record.dropped_packets,
        early_dropped_packets=early,
        full_dropped_packets=max(record.dropped_packets - early, 0),
        lost_packets=record.lost_packets,
        marked_packets=own.get(MARKED, 0),
        sojourn=_sojourn(every),
        scalable=_sojourn(counts.get(True, [])),
    )


def _sojourn(counts: Sequence[int]) -> Sojourn | None:
    found = [sojourns.quantile_s(counts, share) for share in (0.5, 0.95, 0.99)]
    p50_s, p95_s, p99_s = found
    if p50_s is None or p95_s is None or p99_s is None:
        return None
    return Sojourn(p50_s, p95_s, p99_s)
