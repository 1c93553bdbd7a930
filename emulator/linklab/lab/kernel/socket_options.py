"""Options of sockets that Python's `socket` does not name: filters, room for what waits to be read,
the kernel's times of packets (socket(7), linux/filter.h). All for root."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

ALL_PROTOCOLS: Final = 3
"""Of a packet socket that is to get each packet (linux/if_ether.h ETH_P_ALL)."""

_ATTACH_FILTER: Final = 26
_RCVBUFFORCE: Final = 33
_TIMESTAMPNS: Final = 35
_STEP: Final = struct.Struct("=HBBI")
_PROGRAM: Final = struct.Struct("@HP")
_TIME: Final = struct.Struct("@ll")
_LOAD, _IS_EQUAL, _TAKE = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ, BPF_RET
_PACKET_KIND: Final = 0xFFFFF000 + 4  # SKF_AD_OFF + SKF_AD_PKTTYPE
_OUTGOING: Final = 4

NOTES_BYTES: Final = 64
"""Room for the notes that come with a packet, of which its time is one."""


def drop_all(sock: socket.socket) -> None:
    """Has a socket get nothing."""
    _attach(sock, [(_TAKE, 0, 0, 0)])


def take_leaving(sock: socket.socket, most_bytes: int) -> None:
    """Has a packet socket get only what leaves its device, and of that the first bytes."""
    _attach(
        sock,
        [
            (_LOAD, 0, 0, _PACKET_KIND),
            (_IS_EQUAL, 0, 1, _OUTGOING),
            (_TAKE, 0, 0, most_bytes),
            (_TAKE, 0, 0, 0),
        ],
    )


def _attach(sock: socket.socket, steps: Sequence[tuple[int, int, int, int]]) -> None:
    program = ctypes.create_string_buffer(b"".join(_STEP.pack(*step) for step in steps))
    described = _PROGRAM.pack(len(steps), ctypes.addressof(program))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, described)


def give_room(sock: socket.socket, room_bytes: int) -> None:
    """Lets so much wait to be read, whatever the system's limit is."""
    sock.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, room_bytes)


def stamp(sock: socket.socket) -> None:
    """Has a time come with each packet: see `stamped`."""
    sock.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)


def stamped(notes: Iterable[tuple[int, int, Any]]) -> tuple[int, int]:
    """When a packet came, of the notes that `recvmsg` gives: seconds and nanoseconds since 1970."""
    (content,) = (
        content
        for level, kind, content in notes
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS)
    )
    seconds, nanoseconds = _TIME.unpack(content)
    return seconds, nanoseconds
