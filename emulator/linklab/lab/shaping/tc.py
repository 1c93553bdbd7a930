"""Builds messages to the kernel's traffic control (tc), by the layout of linux/rtnetlink.h. Pure.

`hfsc.py` and `netem.py` build those of one queueing discipline each.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from linklab.core.errors import LinklabError
from linklab.core.netlink_messages import (
    ACK,
    CREATE,
    ECHO,
    EXCLUSIVE,
    REPLACE,
    attributes,
    message,
    nested,
    of_answer,
    text,
)
from linklab.queues.discipline import Leaf

ROOT_PARENT: Final = 0xFFFFFFFF
"""The parent of an interface's root qdisc (TC_H_ROOT)."""

ROOT: Final = 0x10000
"""The handle of root qdiscs."""

NEWQDISC, NEWCLASS = 36, 40
_DELQDISC, _GETQDISC, _GETCLASS = 37, 38, 42
_TCA_KIND, TCA_OPTIONS, _TCA_STATS, _TCA_STATS2 = 1, 2, 3, 7
_TCA_STATS_APP = 4
_TCMSG = struct.Struct("=BxxxiIII")
_STATS = struct.Struct("=QIIIIIII")

ADD: Final = ACK | CREATE | EXCLUSIVE
PUT: Final = ACK | CREATE | REPLACE
CHANGE: Final = ACK
"""Flags of messages that add, replace and change an object."""


class ShapingError(LinklabError, RuntimeError):
    """The kernel cannot shape a link as asked."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Holds a qdisc's counters. `lost_packets` are those dropped while the link lost everything.
    `dropped_packets` does not count them."""

    sent_bytes: int
    sent_packets: int
    dropped_packets: int
    queue_bytes: int
    queue_packets: int
    lost_packets: int = 0


NO_COUNTERS: Final = Counters(0, 0, 0, 0, 0)


def about(
    kind: int,
    flags: int,
    index: int,
    handle: int,
    parent: int,
    name: str,
    options: bytes,
    info: int = 0,
) -> bytes:
    """Returns a message about a qdisc, class or filter of an interface. `name` is the kernel's name of its
    kind. Its options are marked as nested, which fq_pie and dualpi2 require (nla_parse_nested)."""
    body = _TCMSG.pack(0, index, handle, parent, info)
    if name:
        body += text(_TCA_KIND, name) + nested(TCA_OPTIONS, options)
    return message(kind, flags, body)


def put_qdisc(index: int, handle: int, parent: int, name: str, options: bytes) -> bytes:
    """Puts a qdisc below `parent`, replacing one with another handle. The old one's packets are
    dropped."""
    return about(NEWQDISC, PUT, index, handle, parent, name, options)


def change_qdisc(index: int, handle: int, parent: int, name: str, options: bytes) -> bytes:
    """Changes the options of a qdisc; what is in it stays."""
    return about(NEWQDISC, CHANGE, index, handle, parent, name, options)


def delete(index: int, handle: int, parent: int = ROOT_PARENT) -> bytes:
    """Removes a qdisc of an interface, by default the root, with everything below it."""
    return about(_DELQDISC, ACK, index, handle, parent, "", b"")


def get_qdisc(index: int, handle: int) -> bytes:
    return about(_GETQDISC, ECHO, index, handle, 0, "", b"")


def get_class(index: int, handle: int) -> bytes:
    return about(_GETCLASS, ECHO, index, handle, 0, "", b"")


def in_answer(answer: bytes) -> dict[int, memoryview]:
    """Returns the attributes in the answer to `get_qdisc` or `get_class`."""
    return of_answer(answer, _TCMSG.size)


def counters(answer: bytes) -> Counters:
    """Returns the counters of every qdisc from the answer to `get_qdisc`."""
    sent, packets, drops, _, _, _, queued, backlog = _STATS.unpack_from(
        in_answer(answer)[_TCA_STATS]
    )
    return Counters(sent, packets, drops, backlog, queued)


def leaf(answer: bytes) -> Leaf:
    """Returns what only qdiscs of this kind count, from the answer to `get_qdisc`."""
    found = in_answer(answer)
    _, _, drops, over_limits, *_ = _STATS.unpack_from(found[_TCA_STATS])
    return Leaf(drops, over_limits, attributes(found[_TCA_STATS2])[_TCA_STATS_APP])
