"""Defines fq_pie: a queue with PIE for each flow, served in turn (tc-fq_pie(8)). Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.core.frames import FRAME_BYTES
from linklab.core.netlink_messages import number
from linklab.queues import pie
from linklab.queues.discipline import (
    Discipline,
    Leaf,
    counted,
    flows,
    microseconds,
    packets,
)
from linklab.schema.quantities import ratio
from linklab.schema.rows import Row, Table

_LIMIT, _FLOWS, _TARGET, _UPDATE, _ALPHA, _BETA, _QUANTUM = 1, 2, 3, 4, 5, 6, 7
_MEMORY_LIMIT, _ECN_PERCENT, _ECN = 8, 9, 10
_STATISTICS: Final = struct.Struct("=IIIIIIIII")  # struct tc_fq_pie_xstats
_NO_MEMORY_LIMIT: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class FqPie(pie.Pie):
    """Holds the settings of fq_pie: those of PIE and three more. The defaults are the kernel's.

    `ecn_up_to` is the probability above which packets with ECN are dropped too.
    """

    ecn_up_to: float = 0.1
    flows: int = 1024
    quantum_bytes: int = FRAME_BYTES


def _options(settings: FqPie, queue_bytes: int) -> bytes:
    return (
        number(_LIMIT, packets(queue_bytes))
        + number(_TARGET, microseconds(settings.target_s))
        + number(_UPDATE, microseconds(settings.update_s))
        + number(_ALPHA, settings.alpha)
        + number(_BETA, settings.beta)
        + number(_QUANTUM, settings.quantum_bytes)
        + number(_MEMORY_LIMIT, _NO_MEMORY_LIMIT)
        + number(_ECN_PERCENT, round(100 * settings.ecn_up_to))
        + number(_ECN, settings.ecn)
    )


def _counters(leaf: Leaf) -> dict[str, int]:
    _, dropped, over_limit, _, marked, *_ = _STATISTICS.unpack_from(leaf.own)
    return counted(marked, dropped, over_limit)


DISCIPLINE: Final = Discipline(
    "fq_pie",
    "fq_pie",
    Table(
        FqPie,
        (
            *pie.ROWS,
            Row(
                "ecn_up_to",
                "ecn_up_to",
                ratio(example="10 %"),
                "above this probability packets with ECN are dropped too, in whole percent",
            ),
            *flows(),
        ),
        about="Each flow has a queue with PIE, and they send in turn.",
    ),
    options=_options,
    once=lambda settings: number(_FLOWS, settings.flows),
    counters=_counters,
    default_bytes=10240 * FRAME_BYTES,
)
