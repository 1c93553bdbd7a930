"""Builds messages to netem, which holds delay, jitter and losses (linux/pkt_sched.h, tc-netem(8)).
Pure."""

from __future__ import annotations

import functools
import struct

from linklab.core.bit_exact_math import log
from linklab.core.netlink_messages import attribute, attributes
from linklab.lab.shaping import tc

_NETEM_LOSS, _NETEM_RATE = 5, 6
_NETEM_LATENCY64, _NETEM_SLOT, _NETEM_SLOT_DIST, _NETEM_SEED = 10, 12, 13, 14
_NETEM_LOSS_GE = 2

_SLOT = struct.Struct("=qqiiqq")
_SLOTS = 4096
_SLOT_UNIT = 8192  # NETEM_DIST_SCALE: one deviation in a table.
_WIDE = 2
"""The factor of a table's deviation. It makes room for times of nine means."""


@functools.cache
def _exponential() -> bytes:
    """Returns netem's table of an exponential distribution (tc-netem(8), distribution)."""
    times = (-log((number + 0.5) / _SLOTS) for number in range(_SLOTS))
    entries = [min(round((time - 1) / _WIDE * _SLOT_UNIT), 2**15 - 1) for time in times]
    return struct.pack(f"={_SLOTS}h", *entries)


def _slots(mean_s: float) -> bytes:
    if not mean_s:
        return attribute(_NETEM_SLOT, bytes(_SLOT.size))
    mean_ns = round(mean_s * 1e9)
    slot = _SLOT.pack(0, 0, 0, 0, mean_ns, _WIDE * mean_ns)
    return attribute(_NETEM_SLOT, slot) + attribute(_NETEM_SLOT_DIST, _exponential())


def _share(ratio: float) -> int:
    return round(ratio * 0xFFFFFFFF)


def put(
    index: int,
    handle: int,
    *,
    limit_packets: int,
    delay_s: float,
    slot_s: float | None,
    loss_ratio: float,
    bursts: tuple[float, float] | None,
    rate_bytes_per_s: int,
    seed: int,
    new: bool = False,
) -> bytes:
    """Sets netem as an interface's root, with all options, because a change drops what it omits.

    With `slot_s` packets wait after their delay for the next of random moments. Their distances are
    exponentially distributed with this mean. None keeps the setting, 0 ends it. Losses are
    independent with `loss_ratio`, or come in bursts: p and r of the gemodel of tc-netem(8), with h
    and 1-k of 0. A seed restarts netem's random numbers (kernel 6.6 or later).
    """
    loss = 0 if bursts else _share(loss_ratio)
    options = struct.pack("=IIIIII", 0, limit_packets, loss, 0, 0, 0)
    if bursts is not None:
        model = struct.pack("=IIII", *map(_share, bursts), 0, 0)
        options += attribute(_NETEM_LOSS, attribute(_NETEM_LOSS_GE, model))
    options += attribute(_NETEM_RATE, struct.pack("=IiIi", rate_bytes_per_s, 0, 0, 0))
    options += attribute(_NETEM_LATENCY64, struct.pack("=q", round(delay_s * 1e9)))
    if slot_s is not None:
        options += _slots(slot_s)
    options += attribute(_NETEM_SEED, struct.pack("=Q", seed))
    flags = tc.ADD if new else tc.CHANGE
    return tc.about(tc.NEWQDISC, flags, index, handle, tc.ROOT_PARENT, "netem", options)


def seed(answer: bytes) -> int | None:
    """Returns the seed in the answer to `get_qdisc` for a netem, None if the kernel has none."""
    options = tc.in_answer(answer)[tc.TCA_OPTIONS][24:]
    found = attributes(options).get(_NETEM_SEED)
    return None if found is None else int(struct.unpack_from("=Q", found)[0])
