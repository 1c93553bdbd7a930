"""Builds messages to HFSC, which holds the rate: a root qdisc and its classes (linux/pkt_sched.h,
tc-hfsc(7)). Pure.

plug only wakes its interface (Linux net/sched/sch_plug.c): with each message that opens a plug for good,
the interface checks all its queues at once.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from linklab.core.netlink_messages import attribute
from linklab.lab.shaping import tc

_TCA_HFSC_FSC, _TCA_HFSC_USC = 2, 3
_CURVE = struct.Struct("=III")
_RELEASE_INDEFINITE, _LIMIT = 2, 3

PLUG: Final = "plug"
WITHOUT_ROOM: Final = struct.pack("=iI", _LIMIT, 0)
"""The options of a plug that accepts no packet."""


def add(index: int, handle: int, default_minor: int) -> bytes:
    """Adds an HFSC root qdisc whose packets go to the class `default_minor` (tc-hfsc(7))."""
    options = struct.pack("=H", default_minor)
    return tc.about(tc.NEWQDISC, tc.ADD, index, handle, tc.ROOT_PARENT, "hfsc", options)


class Curve(NamedTuple):
    """A service curve: bytes/s for the first microseconds, and bytes/s afterwards."""

    first_bytes_per_s: int
    first_us: int
    bytes_per_s: int


_UNLIMITED = Curve(0, 0, 2**31)


def put_class(index: int, handle: int, parent: int, curve: Curve, *, new: bool = False) -> bytes:
    """Adds or changes an HFSC class with an upper limit. A change keeps its queue and restarts the
    curve."""
    options = attribute(_TCA_HFSC_USC, _CURVE.pack(*curve))
    if new:
        options = attribute(_TCA_HFSC_FSC, _CURVE.pack(*_UNLIMITED)) + options
    flags = tc.ADD if new else tc.CHANGE
    return tc.about(tc.NEWCLASS, flags, index, handle, parent, "hfsc", options)


def wake(index: int, handle: int, parent: int) -> bytes:
    """Opens a plug, which wakes its interface. The plug may be open already."""
    options = struct.pack("=iI", _RELEASE_INDEFINITE, 0)
    return tc.about(tc.NEWQDISC, tc.CHANGE, index, handle, parent, PLUG, options)
