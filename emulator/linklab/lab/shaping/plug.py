"""Builds messages to plug, which is only used to wake its interface (Linux net/sched/sch_plug.c).
Pure.

A message opens a plug for good. With each such message the interface checks all its queues at once.
"""

from __future__ import annotations

import struct
from typing import Final

from linklab.lab.shaping import tc

NAME: Final = "plug"
_RELEASE_INDEFINITE, _LIMIT = 2, 3


def without_room() -> bytes:
    """Returns the options of a plug that accepts no packet."""
    return struct.pack("=iI", _LIMIT, 0)


def wake(index: int, handle: int, parent: int) -> bytes:
    """Opens a plug, which wakes its interface. The plug may be open already."""
    options = struct.pack("=iI", _RELEASE_INDEFINITE, 0)
    return tc.about(tc.NEWQDISC, tc.CHANGE, index, handle, parent, NAME, options)
