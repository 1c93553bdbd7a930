"""Defines what a queue discipline is: names, keys, netlink options, counters. Pure.

Each discipline's file has one `Discipline` value. `registry.py` lists them. No other code knows a
discipline by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from linklab.core.frames import FRAME_BYTES
from linklab.schema.quantities import BOOLEAN, count, duration, size
from linklab.schema.rows import Row, Table

S = TypeVar("S")

MARKED, DROPPED_EARLY, DROPPED_FULL = (
    "marked_packets",
    "early_dropped_packets",
    "full_dropped_packets",
)
"""The counters that disciplines share, by their names in `queues.jsonl`: packets with a mark of
congestion (ECN CE), packets that the algorithm dropped, packets dropped by a full queue."""


def counted(marked: int, early: int, full: int) -> dict[str, int]:
    """Returns the counters that disciplines share, by name."""
    return {MARKED: marked, DROPPED_EARLY: early, DROPPED_FULL: full}


DROPPED_ACKS: Final = "ack_dropped_packets"
"""Acknowledgements that a discipline dropped because a later one made them needless."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Holds what the kernel tells of a discipline's qdisc: its drops, how often it was over its
    limits, and its own counters (TCA_STATS_APP)."""

    dropped_packets: int
    over_limits: int
    own: memoryview


@dataclass(frozen=True, slots=True)
class Discipline(Generic[S]):
    """Defines a queue discipline of the kernel for the queue of a link.

    Attributes:
        name: its name in scenarios.
        kind: its name in the kernel.
        table: its own keys, all with defaults.
        options: makes its netlink attributes (TCA_OPTIONS) from the settings and the queue size in
            bytes.
        facing: completes the settings for a direction, "down" or "up".
        once: makes the attributes that the kernel takes only when it makes the qdisc.
        counters: reads its counters. They have the same names in `queues.jsonl`. None if it only
            drops packets that find it full.
        default_bytes: the queue size without the key `size`. None: that of a link without a
            discipline.
    """

    name: str
    kind: str
    table: Table[S]
    options: Callable[[S, int], bytes]
    facing: Callable[[S, str], S] = lambda settings, direction: settings
    once: Callable[[S], bytes] = lambda settings: b""
    counters: Callable[[Leaf], dict[str, int]] | None = None
    default_bytes: int | None = None


AnyDiscipline = Discipline[Any]


def packets(queue_bytes: int) -> int:
    """Returns the size of a queue in full packets, for disciplines that count packets."""
    return math.ceil(queue_bytes / FRAME_BYTES)


def microseconds(seconds: float) -> int:
    """Returns a time as the kernel's qdiscs take it."""
    return round(seconds * 1e6)


TIME: Final = duration(1e-6, 10.0)
"""A time of an algorithm. The kernel counts whole microseconds in 32 bits."""

FLOWS: Final = count(1, 65536)
"""The number of queues of a discipline with fair queueing, which the kernel limits."""

QUANTUM: Final = size(256, 1 << 20)
"""Bytes that a flow may send in a round."""

ECN: Final = Row("ecn", "ecn", BOOLEAN, "marks packets of connections with ECN, else drops them")


def target(about: str = "the waiting time that it aims at") -> Row:
    """Returns the row of a discipline's target."""
    return Row("target", "target_s", TIME, about)


def flows() -> tuple[Row, Row]:
    """Returns the rows of a discipline with fair queueing."""
    return (
        Row("flows", "flows", FLOWS, "queues that a hash of addresses and ports chooses from"),
        Row("quantum", "quantum_bytes", QUANTUM, "bytes that a flow may send in a round"),
    )
