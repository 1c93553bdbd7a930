"""Defines CAKE without its own shaper: a queue per flow and host, in classes of traffic
(tc-cake(8)). Pure."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from linklab.core.frames import FRAME_BYTES, PACKET_MEMORY_BYTES
from linklab.core.netlink_messages import attributes, number
from linklab.queues.discipline import (
    DROPPED_ACKS,
    DROPPED_EARLY,
    MARKED,
    TIME,
    Discipline,
    Leaf,
    microseconds,
    packets,
)
from linklab.schema.quantities import choice
from linklab.schema.rows import Row, Table

_CLASSES_KEY, _ISOLATION, _RTT, _TARGET, _MEMORY, _ACK_FILTER = 3, 5, 7, 8, 10, 16
_TIN_STATISTICS: Final = 10
_OF_TIN: Final = {4: DROPPED_EARLY, 6: DROPPED_ACKS, 8: MARKED}

_CLASSES: Final = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
_FAIRNESS: Final = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost"),
    *("dual-dsthost", "triple-isolate"),
)
_BY_CLIENT: Final = {"down": "dual-dsthost", "up": "dual-srchost"}
"""Shares a direction between the hosts at home, as OpenWrt's sqm-scripts recommend. CAKE's own default,
triple-isolate, shares it between flows here, because all of them have one server."""

_FILTERS: Final = ("none", "filter", "aggressive")

_TARGET_SHARE: Final = 20
"""CAKE aims at this part of the round trip (iproute2, q_cake.c)."""


@dataclass(frozen=True, slots=True)
class Cake:
    """Holds the settings of CAKE. The defaults are the kernel's, except the isolation. CAKE always
    marks packets of connections with ECN."""

    rtt_s: float = 0.1
    classes: str = _CLASSES[0]
    isolation: str | None = None
    ack_filter: str = _FILTERS[0]


def _options(settings: Cake, queue_bytes: int) -> bytes:
    rtt_us = microseconds(settings.rtt_s)
    return (
        number(_CLASSES_KEY, _CLASSES.index(settings.classes))
        + number(_ISOLATION, _FAIRNESS.index(settings.isolation or _BY_CLIENT["down"]))
        + number(_RTT, rtt_us)
        + number(_TARGET, max(1, rtt_us // _TARGET_SHARE))
        + number(_MEMORY, min(packets(queue_bytes) * PACKET_MEMORY_BYTES, 2**32 - 1))
        + number(_ACK_FILTER, _FILTERS.index(settings.ack_filter))
    )


def _facing(settings: Cake, direction: str) -> Cake:
    return replace(settings, isolation=settings.isolation or _BY_CLIENT[direction])


def _counters(leaf: Leaf) -> dict[str, int]:
    """Sums the counters of all classes. CAKE counts the drops of a full queue as its other drops."""
    counted = Counter(dict.fromkeys(_OF_TIN.values(), 0))
    for tin in attributes(attributes(leaf.own)[_TIN_STATISTICS]).values():
        own = attributes(tin)
        counted.update({name: struct.unpack("=I", own[kind])[0] for kind, name in _OF_TIN.items()})
    return dict(counted)


DISCIPLINE: Final = Discipline(
    "cake",
    "cake",
    Table(
        Cake,
        (
            Row("rtt", "rtt_s", TIME, "the round trip that it reckons with; it aims at 1/20"),
            Row("classes", "classes", choice(*_CLASSES), "classes of traffic, by the DSCP field"),
            Row(
                "isolation",
                "isolation",
                choice(*_FAIRNESS),
                "who gets the same share: flows, hosts, or first hosts, then their flows",
                unset=None,
                default=" and ".join(f"`{one}` {way}" for way, one in _BY_CLIENT.items()),
            ),
            Row("ack_filter", "ack_filter", choice(*_FILTERS), "drops acknowledgements that wait"),
        ),
        about="CAKE shares a link between hosts and flows. It marks packets of connections with "
        "ECN, and drops others.",
    ),
    options=_options,
    facing=_facing,
    counters=_counters,
    default_bytes=10240 * FRAME_BYTES,
)
