"""Builds messages to link, the guest kernel's own qdisc, which holds the rate
(places/guest/kernel_sources/net/sched/sch_link.c). Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from linklab.core.netlink_messages import attribute, attributes
from linklab.lab.shaping import tc

NAME: Final = "link"
_RATE, _TABLE, _SHUT, _SOJOURN = 1, 2, 3, 4


def rate(rate_bps: int) -> bytes:
    """Returns the option of a rate from now on, 0 to hold all frames. It ends a table."""
    return attribute(_RATE, struct.pack("=Q", rate_bps))


def table(changes: Iterable[tuple[int, int]]) -> bytes:
    """Returns the option of rates that follow later: times in ns of the monotonic clock, with the
    rate from then on in bit/s. It replaces an earlier table."""
    return attribute(_TABLE, b"".join(struct.pack("=QQ", *change) for change in changes))


def shut(*, is_shut: bool) -> bytes:
    """Returns the option of a link that loses all its frames, or no longer does so."""
    return attribute(_SHUT, struct.pack("=B", is_shut))


def lost_packets(answer: bytes) -> int:
    """Returns how many packets were lost while the link was shut, from the answer to `get_qdisc`."""
    return int(struct.unpack_from("=Q", tc.leaf(answer).own)[0])


def sojourns(answer: bytes) -> list[list[int]]:
    """Returns how many packets waited how long, from the answer to `get_class`.

    One list is for packets of classic connections, one for those with ECT(1) or CE (RFC 9331). Both
    have a number for each bucket of `core/sojourns.py`.
    """
    found = attributes(tc.in_answer(answer)[tc.TCA_OPTIONS])[_SOJOURN]
    counts = [count for (count,) in struct.iter_unpack("=I", found)]
    half = len(counts) // 2
    return [counts[:half], counts[half:]]
