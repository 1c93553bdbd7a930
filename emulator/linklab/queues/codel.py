"""Defines CoDel: drops from the front while packets wait too long (RFC 8289, tc-codel(8)). Pure."""

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
from linklab.schema.rows import Row, Table

_TARGET, _LIMIT, _INTERVAL, _ECN = 1, 2, 3, 4
_STATISTICS: Final = struct.Struct("=IIIIiIIII")  # struct tc_codel_xstats

INTERVAL: Final = Row(
    "interval", "interval_s", TIME, "how long packets may wait too long; about a large round trip"
)


@dataclass(frozen=True, slots=True)
class CoDel:
    """Holds the settings of CoDel. The defaults are the kernel's."""

    target_s: float = 0.005
    interval_s: float = 0.1
    ecn: bool = False


def _options(settings: CoDel, queue_bytes: int) -> bytes:
    return (
        number(_TARGET, microseconds(settings.target_s))
        + number(_LIMIT, packets(queue_bytes))
        + number(_INTERVAL, microseconds(settings.interval_s))
        + number(_ECN, settings.ecn)
    )


def _counters(leaf: Leaf) -> dict[str, int]:
    _, _, _, _, _, over_limit, marked, _, _ = _STATISTICS.unpack_from(leaf.own)
    return counted(marked, leaf.dropped_packets - over_limit, over_limit)


DISCIPLINE: Final = Discipline(
    "codel",
    "codel",
    Table(
        CoDel,
        (target(), INTERVAL, ECN),
        about="CoDel drops the oldest packet while packets wait too long (RFC 8289).",
    ),
    options=_options,
    counters=_counters,
    default_bytes=1000 * FRAME_BYTES,
)
