"""Builds messages to HFSC, which holds the rate: a root qdisc and its classes (linux/pkt_sched.h,
tc-hfsc(7)). Pure."""

from __future__ import annotations

import struct
from typing import NamedTuple

from linklab.core.netlink_messages import attribute, attributes
from linklab.lab.shaping import tc

_TCA_HFSC_FSC, _TCA_HFSC_USC, _TCA_HFSC_SOJOURN = 2, 3, 4
_CURVE = struct.Struct("=III")


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


def sojourns(answer: bytes) -> list[list[int]] | None:
    """Returns how many packets of a class waited how long, from the answer to `get_class`.

    One list is for packets of classic connections, one for those with ECT(1) or CE (RFC 9331). Both
    have a number for each bucket of `core/sojourns.py`. None if the kernel does not count them: only
    the guest's kernel does (`kernel.patch`).
    """
    found = attributes(tc.in_answer(answer)[tc.TCA_OPTIONS]).get(_TCA_HFSC_SOJOURN)
    if found is None:
        return None
    counts = [count for (count,) in struct.iter_unpack("=I", found)]
    half = len(counts) // 2
    return [counts[:half], counts[half:]]
