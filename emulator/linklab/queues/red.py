"""Defines RED: drops at random, the more the longer the average queue is (Floyd and Jacobson 1993,
tc-red(8)). Pure.

The kernel takes logarithms of its parameters. They are computed as tc does (iproute2, tc_red.c), but
idle times in the kernel's µs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import mul
from typing import Final

from linklab.core import units
from linklab.core.bit_exact_math import log
from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import MAX_QUEUE_BYTES, MAX_RATE_BPS, MIN_RATE_BPS
from linklab.core.netlink_messages import attribute, number
from linklab.queues.discipline import (
    ECN,
    Discipline,
    Leaf,
    counted,
)
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import BOOLEAN, rate, ratio, size
from linklab.schema.rows import Row, Table

_PARAMETERS, _IDLE_TABLE, _PROBABILITY = 1, 2, 3
_QUEUE: Final = struct.Struct("=IIIBBBB")  # struct tc_red_qopt
_STATISTICS: Final = struct.Struct("=IIII")  # struct tc_red_xstats
_ECN_FLAG, _ADAPTIVE_FLAG = 1, 4

_PACKET_BYTES: Final = 1000
"""The average packet that tc reckons with."""

_MOST_SHIFT: Final = 31


@dataclass(frozen=True, slots=True)
class Red:
    """Holds the settings of RED. The defaults are tc's. Average queues up to `min_bytes` drop
    nothing, those of `max_bytes` `probability`, and longer ones everything. `bandwidth_bps` is the
    rate at which an idle time shortens the average queue."""

    min_bytes: int | None = None
    max_bytes: int | None = None
    probability: float = 0.02
    adaptive: bool = False
    bandwidth_bps: int = 10_000_000
    ecn: bool = False

    def bounds(self, queue_bytes: int) -> tuple[int, int]:
        """Returns both average queues, by default 1/12 and 1/4 of the queue's size."""
        most = max(self.max_bytes or queue_bytes // 4, 2)
        return max(self.min_bytes or most // 3, 1), most


def _average_shift(least: int, most: int, burst: int) -> int:
    """Returns how slowly the average follows the queue, as a power of 2 (tc_red_eval_ewma).

    tc refuses a `least` of up to a packet. Here the average then follows at once. The kernel counts
    shifted bytes in 32 bits (red_check_params).
    """
    wanted = burst + 1 - least / _PACKET_BYTES
    for shift in range(1, _MOST_SHIFT - most.bit_length() + 1):
        weight = 0.5**shift
        *_, kept = accumulate(repeat(1 - weight, burst), mul)
        if wanted <= (1 - kept) / weight:
            return shift
    return 1 if wanted >= burst else _MOST_SHIFT - most.bit_length()


def _probability_shift(span: int, probability: float) -> int:
    """Returns the probability per byte as a power of 1/2 (tc_red_eval_P)."""
    share = probability / span
    return next((shift for shift in range(_MOST_SHIFT) if share * 2.0**shift > 1), _MOST_SHIFT)


def _idle(shift: int, bandwidth_bps: int) -> tuple[int, bytes]:
    """Returns the length of the table's cells as a power of 2 in µs, and the table of idle times
    (tc_red_eval_idle_damping)."""
    halvings_per_us = -log(1 - 0.5**shift) * bandwidth_bps / (_PACKET_BYTES * 8e6)
    longest_us = _MOST_SHIFT / halvings_per_us
    cell = next((one for one in range(_MOST_SHIFT) if longest_us / 2**one < 512), _MOST_SHIFT)
    inner = (min(int((at << cell) * halvings_per_us), _MOST_SHIFT) for at in range(1, 255))
    return cell, bytes([0, *inner, _MOST_SHIFT])


def _options(settings: Red, queue_bytes: int) -> bytes:
    least, most = settings.bounds(queue_bytes)
    burst = max((2 * least + most) // (3 * _PACKET_BYTES), 1)
    shift = _average_shift(least, most, burst)
    cell, table = _idle(shift, settings.bandwidth_bps)
    flags = _ECN_FLAG * settings.ecn | _ADAPTIVE_FLAG * settings.adaptive
    decay = _probability_shift(most - least, settings.probability)
    parameters = _QUEUE.pack(queue_bytes, least, most, shift, decay, cell, flags)
    return (
        attribute(_PARAMETERS, parameters)
        + attribute(_IDLE_TABLE, table)
        + number(_PROBABILITY, min(int(settings.probability * 2**32), 2**32 - 1))
    )


def _counters(leaf: Leaf) -> dict[str, int]:
    early, full, _, marked = _STATISTICS.unpack_from(leaf.own)
    return counted(marked, early, full)


def _check(mapping: Mapping, settings: Red) -> None:
    if (settings.min_bytes or 1) >= (settings.max_bytes or MAX_QUEUE_BYTES):
        mapping.fail(
            "min",
            f"{units.format_size(settings.min_bytes or 1)} is not less than the max of "
            f"{units.format_size(settings.max_bytes or 0)}",
        )
    if settings.min_bytes is not None and settings.max_bytes is None:
        mapping.fail("min", "goes with a max, which is missing")


_SIZE: Final = size(FRAME_BYTES, MAX_QUEUE_BYTES)

DISCIPLINE: Final = Discipline(
    "red",
    "red",
    Table(
        Red,
        (
            Row(
                "min",
                "min_bytes",
                _SIZE,
                "average queue up to which nothing is dropped",
                unset=None,
                default="1/3 of `max`",
            ),
            Row(
                "max",
                "max_bytes",
                _SIZE,
                "average queue above which everything is dropped",
                unset=None,
                default="1/4 of `size`",
            ),
            Row(
                "probability",
                "probability",
                ratio(1e-6, 1.0, example="2 %"),
                "share of packets dropped at `max`",
            ),
            Row(
                "adaptive", "adaptive", BOOLEAN, "changes the probability, for an average half way"
            ),
            Row(
                "bandwidth",
                "bandwidth_bps",
                rate(MIN_RATE_BPS, MAX_RATE_BPS),
                "rate at which idle times shorten the average queue",
            ),
            ECN,
        ),
        check=_check,
        about="RED drops at random, the more the longer the average queue is. A change of the "
        "queue's size drops what waits.",
    ),
    options=_options,
    counters=_counters,
)
