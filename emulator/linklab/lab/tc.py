"""Requests to the kernel's traffic control (tc) as prepared bytes over a netlink socket.

A lab changes rates fifty times a second and reads its queues as often. pyroute2 takes 1 ms of
a core for one change and a tc process 20 ms; a message whose bytes are prepared once and
patched takes a system call. Layouts are those of linux/rtnetlink.h and linux/pkt_sched.h.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from typing import NamedTuple

_NETLINK_ROUTE = 0
_NLMSG_ERROR = 2
_NEWQDISC, _GETQDISC, _NEWCLASS = 36, 38, 40
_REQUEST, _ACK, _ECHO, _EXCL, _CREATE = 0x1, 0x4, 0x8, 0x200, 0x400
_ROOT_PARENT = 0xFFFFFFFF

_TCA_KIND, _TCA_OPTIONS, _TCA_STATS = 1, 2, 3
_TCA_HFSC_FSC, _TCA_HFSC_USC = 2, 3
_NETEM_LOSS, _NETEM_RATE = 5, 6
_NETEM_LATENCY64, _NETEM_JITTER64, _NETEM_SEED = 10, 11, 14
_NETEM_LOSS_GE = 2
_PLUG_RELEASE_INDEFINITE, _PLUG_LIMIT = 2, 3

_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BxxxiIII")
_ATTRIBUTE = struct.Struct("=HH")
_STATS = struct.Struct("=QIIIIIII")
_CURVE = struct.Struct("=III")


class TcError(OSError):
    """The kernel refused a request to traffic control."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a qdisc has counted since it was made."""

    sent_bytes: int
    sent_packets: int
    dropped_packets: int
    queue_bytes: int
    queue_packets: int


class Channel:
    """A netlink socket for traffic control in the calling thread's network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE
        )
        self._socket.bind((0, 0))

    def request(self, message: bytes | bytearray) -> bytes:
        """Sends one message and returns the kernel's answer; TcError if it refuses."""
        self._socket.send(message)
        answer = self._socket.recv(65536)
        if _HEADER.unpack_from(answer)[1] == _NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", answer, _HEADER.size)
            if code:
                raise TcError(-code, f"tc: {os.strerror(-code)}")
        return answer

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def _attribute(kind: int, payload: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + bytes(-length % 4)


def _message(
    kind: int, flags: int, index: int, handle: int, parent: int, name: str, options: bytes
) -> bytes:
    body = _TCMSG.pack(0, index, handle, parent, 0)
    if name:
        body += _attribute(_TCA_KIND, name.encode() + b"\0")
        body += _attribute(_TCA_OPTIONS, options)
    return _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, 0, 0) + body


def add_hfsc(index: int, handle: int, default_minor: int) -> bytes:
    """An HFSC root qdisc whose packets go to the class `default_minor` (tc-hfsc(7))."""
    return _message(
        _NEWQDISC,
        _ACK | _CREATE | _EXCL,
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
    options = _attribute(_TCA_HFSC_USC, _CURVE.pack(*curve))
    if new:
        options = _attribute(_TCA_HFSC_FSC, _CURVE.pack(*_UNLIMITED)) + options
    flags = _ACK | (_CREATE | _EXCL if new else 0)
    return _message(_NEWCLASS, flags, index, handle, parent, "hfsc", options)


def _plug(index: int, handle: int, parent: int, flags: int, action: int, limit: int) -> bytes:
    return _message(
        _NEWQDISC, _ACK | flags, index, handle, parent, "plug", struct.pack("=iI", action, limit)
    )


def add_plug(index: int, handle: int, parent: int, limit_bytes: int) -> bytes:
    """A closed plug: a FIFO of so many bytes (Linux net/sched/sch_plug.c)."""
    return _plug(index, handle, parent, _CREATE | _EXCL, _PLUG_LIMIT, limit_bytes)


def open_plug(index: int, handle: int, parent: int) -> bytes:
    """Opens a plug for good. The interface looks at its queues at once, however often this comes."""
    return _plug(index, handle, parent, 0, _PLUG_RELEASE_INDEFINITE, 0)


def _share(ratio: float) -> int:
    return round(ratio * 0xFFFFFFFF)


def netem(
    index: int,
    handle: int,
    *,
    limit_packets: int,
    delay_s: float,
    jitter_s: float,
    loss_ratio: float,
    bursts: tuple[float, float] | None,
    rate_bytes_per_s: int,
    seed: int,
    new: bool = False,
) -> bytes:
    """netem as an interface's root: everything stated, since what a change omits is dropped.

    Losses are independent with `loss_ratio`, or come in bursts: p and r of the gemodel of
    tc-netem(8), with h and 1-k of 0. A seed starts netem's random numbers anew (kernel 6.6 or
    later).
    """
    loss = 0 if bursts else _share(loss_ratio)
    options = struct.pack("=IIIIII", 0, limit_packets, loss, 0, 0, 0)
    if bursts is not None:
        model = struct.pack("=IIII", *map(_share, bursts), 0, 0)
        options += _attribute(_NETEM_LOSS, _attribute(_NETEM_LOSS_GE, model))
    options += _attribute(_NETEM_RATE, struct.pack("=IiIi", rate_bytes_per_s, 0, 0, 0))
    options += _attribute(_NETEM_LATENCY64, struct.pack("=q", round(delay_s * 1e9)))
    options += _attribute(_NETEM_JITTER64, struct.pack("=q", round(jitter_s * 1e9)))
    options += _attribute(_NETEM_SEED, struct.pack("=Q", seed))
    flags = _ACK | (_CREATE | _EXCL if new else 0)
    return _message(_NEWQDISC, flags, index, handle, _ROOT_PARENT, "netem", options)


def get_qdisc(index: int, handle: int) -> bytes:
    """Asks for one qdisc with its options and counters."""
    return _message(_GETQDISC, _ECHO, index, handle, 0, "", b"")


def _attributes(data: memoryview) -> dict[int, memoryview]:
    found = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found


def _of_answer(answer: bytes) -> dict[int, memoryview]:
    return _attributes(memoryview(answer)[_HEADER.size + _TCMSG.size :])


def counters(answer: bytes) -> Counters:
    """The counters in the answer to `get_qdisc`."""
    sent, packets, drops, _, _, _, queued, backlog = _STATS.unpack_from(
        _of_answer(answer)[_TCA_STATS]
    )
    return Counters(sent, packets, drops, backlog, queued)


def netem_seed(answer: bytes) -> int | None:
    """The seed in the answer to `get_qdisc` for a netem; None where the kernel has none."""
    options = _of_answer(answer)[_TCA_OPTIONS][24:]
    found = _attributes(options).get(_NETEM_SEED)
    return None if found is None else int(struct.unpack_from("=Q", found)[0])
