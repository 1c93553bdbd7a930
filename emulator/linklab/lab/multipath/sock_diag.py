"""The subflows of Multipath TCP, and what each has carried, as the kernel tells (sock_diag(7)).

Layouts are those of linux/inet_diag.h, linux/tcp.h (struct tcp_info) and linux/mptcp.h. IPv4 only,
as the lab is.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from linklab.core.netlink_messages import DUMP, HEADER_BYTES, attributes, message, of_answer

DESTROYED = 1
"""The group that is told of every TCP socket that goes (SKNLGRP_INET_TCP_DESTROY)."""

_BY_FAMILY = 20
_REQUEST = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=Bxxx2s2x4s12x16x12x20x")
_INFO, _ULP = 2, 19
_ULP_MPTCP = 3
_TOKEN, _FLAGS, _LOCAL_ID = 2, 8, 10
_BACKUP = 0x10 | 0x20
_FULLY_ESTABLISHED = 0x40
_TIME_WAIT, _LISTEN = 6, 10
_UNKNOWN = 0xFFFFFFFF
_NOT_WANTED = 1 << _TIME_WAIT | 1 << _LISTEN
_DOWNLOAD_BYTES = 64_000
_TCP_INFO = struct.Struct("=44xIIII8xI20xI4xI16xQQ12xI")


@dataclass(frozen=True, slots=True)
class Carried:
    """What a TCP connection is and has carried, at this host's end.

    `received_bytes` and `acknowledged_bytes` are what has come and gone, each byte once, and TCP's
    one for having opened it. `rtt_s` is
    TCP's own estimate, `min_rtt_s` the least that was seen: on who only receives that of the
    handshake; 0 before there is one. `receive_rtt_s` is the round trip as a receiver sees it,
    queues included; 0 where it does not know. `quiet_s` is how long ago data last came or went, in steps of the kernel's ticks.
    """

    address: str
    port: int
    received_bytes: int
    acknowledged_bytes: int
    retransmitted_segments: int
    rtt_s: float
    min_rtt_s: float
    receive_rtt_s: float
    quiet_s: float


@dataclass(frozen=True, slots=True)
class Subflow:
    """A TCP connection that is a part of one of Multipath TCP. `token` says of which, `identifier`
    from which endpoint (0: it is the connection's first), `is_backup` that it carries something
    only while no other one can, `is_established` that the peer has confirmed it."""

    token: int
    identifier: int
    is_backup: bool
    is_established: bool
    tcp: Carried


def all_connections() -> bytes:
    """Asks for all TCP connections of a network namespace but those that wait or listen."""
    wanted = 0xFFF & ~_NOT_WANTED
    request = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), wanted)
    return message(_BY_FAMILY, DUMP, request)


def carried(answer: bytes) -> Carried | None:
    """A connection, of an answer to `all_connections` or of what DESTROYED was told; None where it
    says too little."""
    _, port, address = _MESSAGE.unpack_from(answer, HEADER_BYTES)
    found = of_answer(answer, _MESSAGE.size)
    if _INFO not in found or len(found[_INFO]) < _TCP_INFO.size:
        return None
    (
        sent_ms,
        _,
        received_ms,
        _,
        rtt_us,
        receive_rtt_us,
        retransmitted,
        acknowledged,
        received,
        min_us,
    ) = _TCP_INFO.unpack_from(found[_INFO])
    return Carried(
        address=socket.inet_ntoa(address),
        port=int.from_bytes(port, "big"),
        received_bytes=received,
        acknowledged_bytes=acknowledged,
        retransmitted_segments=retransmitted,
        rtt_s=rtt_us / 1e6,
        min_rtt_s=0.0 if min_us == _UNKNOWN else min_us / 1e6,
        receive_rtt_s=receive_rtt_us / 1e6,
        quiet_s=min(sent_ms, received_ms) / 1e3,
    )


def downloads(answers: Iterable[bytes], address: str) -> Iterator[Carried]:
    """The connections from an address of this host, of answers to `all_connections`, that receive a
    download: they are past handshake and request."""
    for one in map(carried, answers):
        if one is not None and one.address == address and one.received_bytes > _DOWNLOAD_BYTES:
            yield one


def subflow(answer: bytes) -> Subflow | None:
    """A connection that is a subflow, of an answer to `all_connections`; None where it is plain."""
    found = of_answer(answer, _MESSAGE.size)
    ulp = attributes(found[_ULP]) if _ULP in found else {}
    mptcp = attributes(ulp[_ULP_MPTCP]) if _ULP_MPTCP in ulp else {}
    tcp = carried(answer)
    if tcp is None or _FLAGS not in mptcp:
        return None
    token, flags = (struct.unpack("=I", mptcp[one])[0] for one in (_TOKEN, _FLAGS))
    is_backup, is_established = bool(flags & _BACKUP), bool(flags & _FULLY_ESTABLISHED)
    return Subflow(token, mptcp[_LOCAL_ID][0], is_backup, is_established, tcp)
