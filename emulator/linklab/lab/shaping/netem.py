"""Builds messages to netem, which holds delay, jitter and losses (linux/pkt_sched.h, tc-netem(8)).
Pure."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

from linklab.core.bit_exact_math import log
from linklab.core.netlink_messages import attribute, attributes
from linklab.lab.shaping import tc
from linklab.lab.shaping.tc import ShapingError
from linklab.models.loss import bursts_of

_NETEM_DELAY_DIST, _NETEM_REORDER, _NETEM_CORRUPT, _NETEM_LOSS, _NETEM_RATE = 2, 3, 4, 5, 6
_NETEM_LATENCY64, _NETEM_JITTER64 = 10, 11
_NETEM_SLOT, _NETEM_SLOT_DIST, _NETEM_SEED = 12, 13, 14
_NETEM_LOSS_GE = 2

_LIMIT_PACKETS = 1_000_000
"""The most delayed packets that netem holds. It is large, because the leaf limits the queue."""

_IN_ORDER_RATE_BYTES_PER_S = 2**32 - 1
"""netem keeps packets in order if a rate is set (sch_netem, netem_enqueue), as Wi-Fi and LTE do.
This rate is too high to shape."""

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


@dataclass(frozen=True, slots=True)
class Settings:
    """What netem does to packets.

    After `delay_s` packets wait for the next of random moments. Their distances are exponentially
    distributed with the mean `slot_s`. Losses have a mean ratio, and come in bursts of a mean length
    in packets. A length of 1 means independent losses. `jitter_s` counts in the units of `table`:
    netem adds it times an entry / 8192. Packets of `reorder_ratio` have no delay.
    """

    delay_s: float = 0.0
    slot_s: float = 0.0
    loss_ratio: float = 0.0
    loss_burst_packets: float = 1.0
    in_order: bool = True
    jitter_s: float = 0.0
    table: tuple[int, ...] = ()
    reorder_ratio: float = 0.0
    duplicate_ratio: float = 0.0
    corrupt_ratio: float = 0.0


def put(index: int, settings: Settings, seed: int, *, new: bool = False) -> bytes:
    """Sets netem as an interface's root. A seed restarts its random numbers (kernel 6.6 or later).

    netem keeps the slots and the jitter of a message without them, and ends all else that is omitted.
    """
    bursts = bursts_of(settings.loss_ratio, settings.loss_burst_packets)
    loss = 0 if bursts else _share(settings.loss_ratio)
    gap = 1 if settings.reorder_ratio else 0  # With 1 any packet may be reordered.
    duplicates, old_jitter = _share(settings.duplicate_ratio), 0
    options = struct.pack("=IIIIII", 0, _LIMIT_PACKETS, loss, gap, duplicates, old_jitter)
    if bursts is not None:  # p and r of the gemodel of tc-netem(8), with h and 1-k of 0.
        model = struct.pack("=IIII", *map(_share, bursts), 0, 0)
        options += attribute(_NETEM_LOSS, attribute(_NETEM_LOSS_GE, model))
    rate = _IN_ORDER_RATE_BYTES_PER_S if settings.in_order else 0
    options += attribute(_NETEM_RATE, struct.pack("=IiIi", rate, 0, 0, 0))
    options += attribute(_NETEM_LATENCY64, struct.pack("=q", round(settings.delay_s * 1e9)))
    options += _slots(settings.slot_s)
    if settings.table:
        table = struct.pack(f"={len(settings.table)}h", *settings.table)
        options += attribute(_NETEM_DELAY_DIST, table)
    options += attribute(_NETEM_JITTER64, struct.pack("=q", round(settings.jitter_s * 1e9)))
    for kind, ratio in (
        (_NETEM_REORDER, settings.reorder_ratio),
        (_NETEM_CORRUPT, settings.corrupt_ratio),
    ):
        options += attribute(kind, struct.pack("=II", _share(ratio), 0)) if ratio else b""
    options += attribute(_NETEM_SEED, struct.pack("=Q", seed))
    flags = tc.ADD if new else tc.CHANGE
    return tc.about(tc.NEWQDISC, flags, index, tc.ROOT, tc.ROOT_PARENT, "netem", options)


def next_seed(seed: int) -> int:
    """Returns the seed of the next change.

    A seed restarts netem's random numbers (sch_netem, netem_change). Without a seed older kernels
    draw one. The same seed each time would lose the same packets after every change.
    """
    return (seed + _SEED_STEP) % 2**64


_SEED_STEP = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio. It spreads consecutive seeds (Steele et al., SplitMix)."""


def check_seed(answer: bytes, wanted: int) -> None:
    """Raises ShapingError if netem has another seed, by the answer to `get_qdisc`.

    Before Linux 6.6 netem has no seed. Only runs on the host meet such a kernel, where nothing
    repeats to the packet.
    """
    kept = seed(answer)
    if kept not in (wanted, None):
        raise ShapingError(f"netem kept seed {kept} instead of {wanted}: runs would not repeat")


def seed(answer: bytes) -> int | None:
    """Returns the seed in the answer to `get_qdisc` for a netem, None if the kernel has none."""
    options = tc.in_answer(answer)[tc.TCA_OPTIONS][24:]
    found = attributes(options).get(_NETEM_SEED)
    return None if found is None else int(struct.unpack_from("=Q", found)[0])
