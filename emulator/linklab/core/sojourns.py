"""Computes with distributions of sojourn times: how long packets waited in a queue. Pure.

The guest's kernel counts them in buckets (`kernel_sources`, sch_link.c). A bucket is at most 1/16 as
wide as its times, but at least 1.024 µs. So a quantile is exact to 3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNIT_S: Final = 1024e-9
_PER_POWER: Final = 16
"""The number of buckets for each power of two."""


def edge_s(bucket: int) -> float:
    """Returns the shortest time of a bucket."""
    power = max(bucket // _PER_POWER - 1, 0)
    return (bucket - power * _PER_POWER) * _UNIT_S * 2.0**power


def quantile_s(counts: Sequence[int], share: float) -> float | None:
    """Returns the time that this share of the packets waited at most, None without packets.

    Within a bucket the times are taken as evenly spread.
    """
    left = share * sum(counts)
    for bucket, count in enumerate(counts):
        if count and left <= count:
            low_s = edge_s(bucket)
            return low_s + (edge_s(bucket + 1) - low_s) * left / count
        left -= count
    return None
