"""Defines DualPI2: a queue for scalable connections beside one for classic ones, coupled so that
both get the same rate (RFC 9332, Linux net/sched/sch_dualpi2.c). Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.core.frames import FRAME_BYTES, PACKET_MEMORY_BYTES
from linklab.core.netlink_messages import attribute, number
from linklab.queues.discipline import (
    TIME,
    Discipline,
    Leaf,
    counted,
    microseconds,
    packets,
    target,
)
from linklab.schema.quantities import choice, count, measure, ratio
from linklab.schema.rows import Row, Table

_LIMIT, _MEMORY_LIMIT, _TARGET, _UPDATE, _ALPHA, _BETA = 1, 2, 3, 4, 5, 6
_STEP, _COUPLING, _PROTECTION, _MASK = 8, 10, 13, 14
_STATISTICS: Final = struct.Struct("=IIIIIIIIiIII")  # struct tc_dualpi2_xstats
_GAIN_UNITS: Final = 256
_MASKS: Final = {"ect1": 1, "ect": 3}
_GAIN: Final = measure("Hz", 1 / _GAIN_UNITS, 1000.0)


@dataclass(frozen=True, slots=True)
class DualPi2:
    """Holds the settings of DualPI2. The defaults are the kernel's. DualPI2 always marks packets of
    connections with ECN."""

    target_s: float = 0.015
    update_s: float = 0.016
    alpha_hz: float = 0.16
    beta_hz: float = 3.2
    step_s: float = 0.001
    coupling: int = 2
    classic_share: float = 0.1
    scalable: str = "ect1"


def _byte(kind: int, value: int) -> bytes:
    return attribute(kind, bytes([value]))


def _options(settings: DualPi2, queue_bytes: int) -> bytes:
    most = packets(queue_bytes)
    return (
        number(_LIMIT, most)
        + number(_MEMORY_LIMIT, min(most * PACKET_MEMORY_BYTES, 2**32 - 1))
        + number(_TARGET, microseconds(settings.target_s))
        + number(_UPDATE, microseconds(settings.update_s))
        + number(_ALPHA, round(settings.alpha_hz * _GAIN_UNITS))
        + number(_BETA, round(settings.beta_hz * _GAIN_UNITS))
        + number(_STEP, microseconds(settings.step_s))
        + _byte(_COUPLING, settings.coupling)
        + _byte(_PROTECTION, round(100 * settings.classic_share))
        + _byte(_MASK, _MASKS[settings.scalable])
    )


def _counters(leaf: Leaf) -> dict[str, int]:
    _, _, _, classic, scalable, _, marked, step_marked, *_ = _STATISTICS.unpack_from(leaf.own)
    return {
        **counted(marked, leaf.dropped_packets - leaf.over_limits, leaf.over_limits),
        "step_marked_packets": step_marked,
        "classic_packets": classic,
        "scalable_packets": scalable,
    }


DISCIPLINE: Final = Discipline(
    "dualpi2",
    "dualpi2",
    Table(
        DualPi2,
        (
            target("the waiting time of classic packets that it aims at"),
            Row("update", "update_s", TIME, "time between two updates of the probability"),
            Row("alpha", "alpha_hz", _GAIN, "weight of the waiting time's deviation"),
            Row("beta", "beta_hz", _GAIN, "weight of the waiting time's change"),
            Row("step", "step_s", TIME, "scalable packets that waited longer are marked"),
            Row("coupling", "coupling", count(1, 255), "how much more scalable packets are marked"),
            Row("classic_share", "classic_share", ratio(), "the least share of classic packets"),
            Row(
                "scalable",
                "scalable",
                choice(*_MASKS),
                "which packets are scalable: ECT(1) as of RFC 9331, or all with ECN, for dctcp",
            ),
        ),
        about="Scalable connections have a queue of about 1 ms beside classic ones, at the same "
        "rate (RFC 9332). It marks packets with ECN, and drops others.",
    ),
    options=_options,
    counters=_counters,
    default_bytes=10000 * FRAME_BYTES,
)
