"""Reads the subflows of Multipath TCP and their counters from the kernel (sock_diag(7)).

Layouts are those of linux/inet_diag.h, linux/tcp.h (struct tcp_info) and linux/mptcp.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from linklab.core.ip_family import IPV4, IPV6
from linklab.core.netlink_messages import DUMP, HEADER_BYTES, attributes, message, of_answer
from linklab.lab.kernel.socket_options import SOCKET_FAMILIES

DESTROYED = {IPV4: 1, IPV6: 3}
"""The groups for events about closed TCP sockets (SKNLGRP_INET_TCP_DESTROY and that of INET6)."""

_BY_FAMILY = 20
_REQUEST = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=Bxxx2s2x16s16x12x20x")
_ADDRESS_BYTES = {int(socket.AF_INET): 4, int(socket.AF_INET6): 16}
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
    """Describes a TCP connection and its counters at this host's end.

    `received_bytes` and `acknowledged_bytes` count each byte once, plus one for opening the
    connection. `rtt_s` is TCP's estimate, `min_rtt_s` the smallest measured value, 0 if unknown. At
    a host that only receives, `min_rtt_s` is that of the handshake. `receive_rtt_s` is the
    receiver's estimate, queues included, 0 if unknown. `quiet_s` is the time since data last came
    or went, in kernel ticks.
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
    """Describes a subflow. `token` identifies its connection, `identifier` its endpoint (0 for the
    connection's first subflow). `is_backup`: it carries data only while no other subflow can.
    `is_established`: the peer has confirmed it."""

    token: int
    identifier: int
    is_backup: bool
    is_established: bool
    tcp: Carried


def all_connections(family: int = IPV4) -> bytes:
    """Asks for all TCP connections of a network namespace in a family, except listening and waiting
    ones."""
    wanted = 0xFFF & ~_NOT_WANTED
    request = _REQUEST.pack(SOCKET_FAMILIES[family], socket.IPPROTO_TCP, 1 << (_INFO - 1), wanted)
    return message(_BY_FAMILY, DUMP, request)


def carried(answer: bytes) -> Carried | None:
    """Parses a connection in an answer to `all_connections` or in an event of DESTROYED. Returns
    None if the message is incomplete."""
    family, port, address = _MESSAGE.unpack_from(answer, HEADER_BYTES)
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
        address=socket.inet_ntop(family, address[: _ADDRESS_BYTES[family]]),
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
    """Yields the connections from an address of this host that receive a download, past handshake
    and request. `answers` are those to `all_connections`."""
    for one in map(carried, answers):
        if one is not None and one.address == address and one.received_bytes > _DOWNLOAD_BYTES:
            yield one


def subflow(answer: bytes) -> Subflow | None:
    """Parses a connection that is a subflow, in an answer to `all_connections`. Returns None for a
    plain connection."""
    found = of_answer(answer, _MESSAGE.size)
    ulp = attributes(found[_ULP]) if _ULP in found else {}
    mptcp = attributes(ulp[_ULP_MPTCP]) if _ULP_MPTCP in ulp else {}
    tcp = carried(answer)
    if tcp is None or _FLAGS not in mptcp:
        return None
    token, flags = (struct.unpack("=I", mptcp[one])[0] for one in (_TOKEN, _FLAGS))
    is_backup, is_established = bool(flags & _BACKUP), bool(flags & _FULLY_ESTABLISHED)
    return Subflow(token, mptcp[_LOCAL_ID][0], is_backup, is_established, tcp)
