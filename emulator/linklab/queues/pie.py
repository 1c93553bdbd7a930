"""Defines PIE: drops at random so that packets wait about a target (RFC 8033, tc-pie(8)). Pure.

The kernel counts the time between two updates in its ticks (sch_pie.c, usecs_to_jiffies). User Mode
Linux has 100 ticks a second, so RFC 8033's 15 ms would be 20 ms there, as on a router of 100 ticks.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.core.frames import FRAME_BYTES
from linklab.core.netlink_messages import number
from linklab.queues.discipline import (
    ECN,
    TIME,
    Discipline,
    Leaf,
    counted,
    microseconds,
    packets,
    target,
)
from linklab.schema.quantities import count
from linklab.schema.rows import Row, Table

_TARGET, _LIMIT, _UPDATE, _ALPHA, _BETA, _ECN = 1, 2, 3, 4, 5, 6
_STATISTICS: Final = struct.Struct("=QIIIIIIII")  # struct tc_pie_xstats
_GAIN: Final = count(0, 32)

ROWS: Final = (
    target(),
    Row(
        "update",
        "update_s",
        TIME,
        "time between two updates of the probability; the guest rounds it up to whole 10 ms",
    ),
    Row("alpha", "alpha", _GAIN, "weight of the waiting time's deviation, in 1/16 Hz"),
    Row("beta", "beta", _GAIN, "weight of the waiting time's change, in 1/16 Hz"),
    ECN,
)


@dataclass(frozen=True, slots=True)
class Pie:
    """Holds the settings of PIE. The defaults are those of a kernel with 100 ticks a second."""

    target_s: float = 0.015
    update_s: float = 0.02
    alpha: int = 2
    beta: int = 20
    ecn: bool = False


def _options(settings: Pie, queue_bytes: int) -> bytes:
    return (
        number(_TARGET, microseconds(settings.target_s))
        + number(_LIMIT, packets(queue_bytes))
        + number(_UPDATE, microseconds(settings.update_s))
        + number(_ALPHA, settings.alpha)
        + number(_BETA, settings.beta)
        + number(_ECN, settings.ecn)
    )


def _counters(leaf: Leaf) -> dict[str, int]:
    *_, dropped, over_limit, _, marked = _STATISTICS.unpack_from(leaf.own)
    return counted(marked, dropped, over_limit)


DISCIPLINE: Final = Discipline(
    "pie",
    "pie",
    Table(
        Pie,
        ROWS,
        about="PIE drops at random, so that packets wait about as long as its target (RFC 8033).",
    ),
    options=_options,
    counters=_counters,
    default_bytes=1000 * FRAME_BYTES,
)
