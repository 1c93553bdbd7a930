"""Messages to the kernel's traffic control (tc), by the layouts of linux/rtnetlink.h and
linux/pkt_sched.h.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import NamedTuple

from linklab.core.elementary import log
from linklab.lab.kernel.netlink import (
    ACK,
    CREATE,
    ECHO,
    EXCLUSIVE,
    REPLACE,
    attribute,
    attributes,
    message,
    of_answer,
    text,
)

_NEWQDISC, _DELQDISC, _GETQDISC, _NEWCLASS = 36, 37, 38, 40
_ROOT_PARENT = 0xFFFFFFFF

_TCA_KIND, _TCA_OPTIONS, _TCA_STATS = 1, 2, 3
_TCA_HFSC_FSC, _TCA_HFSC_USC = 2, 3
_NETEM_LOSS, _NETEM_RATE = 5, 6
_NETEM_LATENCY64, _NETEM_SLOT, _NETEM_SLOT_DIST, _NETEM_SEED = 10, 12, 13, 14
_NETEM_LOSS_GE = 2
_PLUG_RELEASE_INDEFINITE, _PLUG_LIMIT = 2, 3

_TCMSG = struct.Struct("=BxxxiIII")
_STATS = struct.Struct("=QIIIIIII")
_CURVE = struct.Struct("=III")


@dataclass(frozen=True, slots=True)
class Counters:
    """What a qdisc has counted since it was made. `lost_packets` are those that were dropped while
    the link lost everything, which `dropped_packets` leaves out."""

    sent_bytes: int
    sent_packets: int
    dropped_packets: int
    queue_bytes: int
    queue_packets: int
    lost_packets: int = 0


def _message(
    kind: int, flags: int, index: int, handle: int, parent: int, name: str, options: bytes
) -> bytes:
    body = _TCMSG.pack(0, index, handle, parent, 0)
    if name:
        body += text(_TCA_KIND, name) + attribute(_TCA_OPTIONS, options)
    return message(kind, flags, body)


def add_hfsc(index: int, handle: int, default_minor: int) -> bytes:
    """An HFSC root qdisc whose packets go to the class `default_minor` (tc-hfsc(7))."""
    return _message(
        _NEWQDISC,
        ACK | CREATE | EXCLUSIVE,
        index,
        handle,
        _ROOT_PARENT,
        "hfsc",
        struct.pack("=H", default_minor),
    )


class Curve(NamedTuple):
    """A service curve from now on: bytes/s for the first microseconds, and bytes/s afterwards."""

    first_bytes_per_s: int
    first_us: int
    bytes_per_s: int


_UNLIMITED = Curve(0, 0, 2**31)


def hfsc_class(index: int, handle: int, parent: int, curve: Curve, *, new: bool = False) -> bytes:
    """An HFSC class with an upper limit; changing it keeps its queue and begins the curve anew."""
    options = attribute(_TCA_HFSC_USC, _CURVE.pack(*curve))
    if new:
        options = attribute(_TCA_HFSC_FSC, _CURVE.pack(*_UNLIMITED)) + options
    flags = ACK | (CREATE | EXCLUSIVE if new else 0)
    return _message(_NEWCLASS, flags, index, handle, parent, "hfsc", options)


def _plug(index: int, handle: int, parent: int, flags: int, action: int, limit: int) -> bytes:
    return _message(
        _NEWQDISC, ACK | flags, index, handle, parent, "plug", struct.pack("=iI", action, limit)
    )


def put_plug(index: int, handle: int, parent: int, limit_bytes: int) -> bytes:
    """A closed plug: a FIFO of so many bytes (Linux net/sched/sch_plug.c). It takes the place of one
    with another handle; what was in that is dropped."""
    return _plug(index, handle, parent, CREATE | REPLACE, _PLUG_LIMIT, limit_bytes)


def limit_plug(index: int, handle: int, parent: int, limit_bytes: int) -> bytes:
    """Has a plug take so many bytes from now on; what is in it stays."""
    return _plug(index, handle, parent, 0, _PLUG_LIMIT, limit_bytes)


def open_plug(index: int, handle: int, parent: int) -> bytes:
    """Opens a plug for good. The interface looks at its queues at once, however often this comes."""
    return _plug(index, handle, parent, 0, _PLUG_RELEASE_INDEFINITE, 0)


_SLOT = struct.Struct("=qqiiqq")
_SLOTS = 4096
_SLOT_UNIT = 8192  # NETEM_DIST_SCALE: one deviation in a table.
_WIDE = 2
"""By how much a table's deviation is widened, so that it has room for times of nine means."""


@functools.cache
def _exponential() -> bytes:
    """Netem's table of an exponential distribution (tc-netem(8), distribution)."""
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


def netem(
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
    """netem as an interface's root: everything stated, since what a change omits is dropped.

    With `slot_s` packets wait after their delay for the next of moments that lie so far apart on
    average, exponentially distributed; None leaves that as it is, and 0 ends it.

    Losses are independent with `loss_ratio`, or come in bursts: p and r of the gemodel of
    tc-netem(8), with h and 1-k of 0. A seed starts netem's random numbers anew (kernel 6.6 or
    later).
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
    flags = ACK | (CREATE | EXCLUSIVE if new else 0)
    return _message(_NEWQDISC, flags, index, handle, _ROOT_PARENT, "netem", options)


def delete_root(index: int, handle: int) -> bytes:
    """Takes an interface's root qdisc away, with all below it."""
    return _message(_DELQDISC, ACK, index, handle, _ROOT_PARENT, "", b"")


def get_qdisc(index: int, handle: int) -> bytes:
    """Asks for one qdisc with its options and counters."""
    return _message(_GETQDISC, ECHO, index, handle, 0, "", b"")


def counters(answer: bytes) -> Counters:
    """The counters in the answer to `get_qdisc`."""
    sent, packets, drops, _, _, _, queued, backlog = _STATS.unpack_from(
        of_answer(answer, _TCMSG.size)[_TCA_STATS]
    )
    return Counters(sent, packets, drops, backlog, queued)


def netem_seed(answer: bytes) -> int | None:
    """The seed in the answer to `get_qdisc` for a netem; None where the kernel has none."""
    options = of_answer(answer, _TCMSG.size)[_TCA_OPTIONS][24:]
    found = attributes(options).get(_NETEM_SEED)
    return None if found is None else int(struct.unpack_from("=Q", found)[0])
