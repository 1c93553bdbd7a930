"""Defines fq_codel: a queue with CoDel for each flow, served in turn (RFC 8290, tc-fq_codel(8)).
Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.core.frames import FRAME_BYTES
from linklab.core.netlink_messages import number
from linklab.queues.codel import INTERVAL
from linklab.queues.discipline import (
    ECN,
    Discipline,
    Leaf,
    counted,
    flows,
    microseconds,
    packets,
    target,
)
from linklab.schema.rows import Table

_TARGET, _LIMIT, _INTERVAL, _ECN, _FLOWS, _QUANTUM, _MEMORY_LIMIT = 1, 2, 3, 4, 5, 6, 9
_STATISTICS: Final = struct.Struct("=IIIIIIIIII")  # struct tc_fq_codel_xstats of a qdisc
_NO_MEMORY_LIMIT: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class FqCoDel:
    """Holds the settings of fq_codel. The defaults are the kernel's."""

    target_s: float = 0.005
    interval_s: float = 0.1
    flows: int = 1024
    quantum_bytes: int = FRAME_BYTES
    ecn: bool = True


def _options(settings: FqCoDel, queue_bytes: int) -> bytes:
    return (
        number(_TARGET, microseconds(settings.target_s))
        + number(_LIMIT, packets(queue_bytes))
        + number(_INTERVAL, microseconds(settings.interval_s))
        + number(_ECN, settings.ecn)
        + number(_QUANTUM, settings.quantum_bytes)
        + number(_MEMORY_LIMIT, _NO_MEMORY_LIMIT)
    )


def _counters(leaf: Leaf) -> dict[str, int]:
    _, _, over_limit, marked, *_ = _STATISTICS.unpack_from(leaf.own)
    return counted(marked, leaf.dropped_packets - over_limit, over_limit)


DISCIPLINE: Final = Discipline(
    "fq_codel",
    "fq_codel",
    Table(
        FqCoDel,
        (target("the waiting time of a flow that it aims at"), INTERVAL, *flows(), ECN),
        about="Each flow has a queue with CoDel, and they send in turn (RFC 8290).",
    ),
    options=_options,
    once=lambda settings: number(_FLOWS, settings.flows),
    counters=_counters,
    default_bytes=10240 * FRAME_BYTES,
)
