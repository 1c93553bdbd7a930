"""Sets options of sockets that Python's `socket` does not name: filters, buffers, time stamps.

See socket(7), linux/filter.h. All need root.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

from linklab.core.ip_family import IPV4, IPV6

SOCKET_FAMILIES: Final = {IPV4: socket.AF_INET, IPV6: socket.AF_INET6}
"""The kernel's number of each family of addresses."""

ALL_PROTOCOLS: Final = 3
"""The protocol of a packet socket that receives all packets (linux/if_ether.h ETH_P_ALL)."""

_ATTACH_FILTER: Final = 26
_RCVBUFFORCE: Final = 33
_TIMESTAMPNS: Final = 35
_STEP: Final = struct.Struct("=HBBI")
_PROGRAM: Final = struct.Struct("@HP")
_TIME: Final = struct.Struct("@ll")
_LOAD, _IS_EQUAL, _TAKE = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ, BPF_RET
_LOAD_BYTE, _MASK = 0x30, 0x54  # BPF_LD | BPF_B | BPF_ABS, BPF_ALU | BPF_AND
_PACKET_KIND: Final = 0xFFFFF000 + 4  # SKF_AD_OFF + SKF_AD_PKTTYPE
_OUTGOING: Final = 4

NOTES_BYTES: Final = 64
"""Space for the ancillary data of a packet, which includes its time."""


def drop_all(sock: socket.socket) -> None:
    """Makes a socket drop everything that it receives."""
    _attach(sock, [(_TAKE, 0, 0, 0)])


def take_leaving(sock: socket.socket, most_bytes: int) -> None:
    """Makes a packet socket receive only the first bytes of outgoing packets."""
    _attach(
        sock,
        [
            (_LOAD, 0, 0, _PACKET_KIND),
            (_IS_EQUAL, 0, 1, _OUTGOING),
            (_TAKE, 0, 0, most_bytes),
            (_TAKE, 0, 0, 0),
        ],
    )


def take_tcp(sock: socket.socket, most_bytes: int) -> None:
    """Makes a packet socket of SOCK_DGRAM receive only the first bytes of TCP packets. Packets of
    IPv6 with extension headers do not come."""
    _attach(
        sock,
        [
            (_LOAD_BYTE, 0, 0, 0),
            (_MASK, 0, 0, 0xF0),
            (_IS_EQUAL, 0, 2, 0x40),
            (_LOAD_BYTE, 0, 0, 9),
            (_IS_EQUAL, 4, 3, socket.IPPROTO_TCP),
            (_IS_EQUAL, 0, 2, 0x60),
            (_LOAD_BYTE, 0, 0, 6),
            (_IS_EQUAL, 1, 0, socket.IPPROTO_TCP),
            (_TAKE, 0, 0, 0),
            (_TAKE, 0, 0, most_bytes),
        ],
    )


def _attach(sock: socket.socket, steps: Sequence[tuple[int, int, int, int]]) -> None:
    program = ctypes.create_string_buffer(b"".join(_STEP.pack(*step) for step in steps))
    described = _PROGRAM.pack(len(steps), ctypes.addressof(program))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, described)


def give_room(sock: socket.socket, room_bytes: int) -> None:
    """Sets a socket's receive buffer, beyond the system's limit if needed."""
    sock.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, room_bytes)


def stamp(sock: socket.socket) -> None:
    """Makes the kernel attach a time to each packet. `stamped` reads it."""
    sock.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)


def stamped(notes: Iterable[tuple[int, int, Any]]) -> tuple[int, int]:
    """Returns a packet's time from the ancillary data of `recvmsg`: seconds and nanoseconds since
    1970."""
    (content,) = (
        content
        for level, kind, content in notes
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS)
    )
    seconds, nanoseconds = _TIME.unpack(content)
    return seconds, nanoseconds
