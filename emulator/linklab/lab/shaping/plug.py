"""Messages to plug, of which the only use is that it wakes its interface (Linux net/sched/sch_plug.c). Pure.

A plug is opened for good by a message. With each such message the interface looks at all its queues
at once.
"""

from __future__ import annotations

import struct
from typing import Final

from linklab.lab.shaping import tc

NAME: Final = "plug"
_RELEASE_INDEFINITE, _LIMIT = 2, 3


def without_room() -> bytes:
    """The options of a plug that takes no packet."""
    return struct.pack("=iI", _LIMIT, 0)


def wake(index: int, handle: int, parent: int) -> bytes:
    """Opens a plug, which wakes its interface. It may be open."""
    options = struct.pack("=iI", _RELEASE_INDEFINITE, 0)
    return tc.about(tc.NEWQDISC, tc.CHANGE, index, handle, parent, NAME, options)
