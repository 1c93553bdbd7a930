"""Requests to the kernel as prepared bytes over a netlink socket (netlink(7), rtnetlink(7)).

A lab changes rates fifty times a second and reads its queues as often. pyroute2 takes 1 ms of
a core for one change and a tc process 20 ms; a message whose bytes are prepared once and
patched takes a system call. And to import pyroute2 takes a guest half a second of its boot.
Messages are in `tc.py`, `rtnetlink.py`, `path_manager.py` and `sock_diag.py`.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

REQUEST, ACK, ECHO, REPLACE, EXCLUSIVE, CREATE = 0x1, 0x4, 0x8, 0x100, 0x200, 0x400
DUMP = 0x300
"""Flags of a message (linux/netlink.h)."""

ROUTE, SOCK_DIAG, GENERIC = 0, 4, 16
"""What a socket speaks of: interfaces and routes, sockets, all else (linux/netlink.h)."""

_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
HEADER_BYTES = _HEADER.size
_ATTRIBUTE = struct.Struct("=HH")
_KIND_MASK = 0x3FFF
_NESTED = 0x8000
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_ANSWER_BYTES = 32768


class NetlinkError(OSError):
    """The kernel refused a request."""


class Channel:
    """A netlink socket, for life in what is the calling thread's network namespace now. It speaks
    of `protocol`."""

    def __init__(self, protocol: int = ROUTE) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol
        )
        self._socket.bind((0, 0))

    def request(self, message: bytes | bytearray) -> bytes:
        """Sends one message and returns the kernel's answer; NetlinkError if it refuses."""
        self._socket.send(message)
        answer = self._socket.recv(_ANSWER_BYTES)
        _check(answer)
        return answer

    def dump(self, message: bytes) -> list[bytes]:
        """Sends one message with DUMP and returns every message of the kernel's answer;
        NetlinkError if it refuses."""
        self._socket.send(message)
        found: list[bytes] = []
        while True:
            for one in _parted(self._socket.recv(_ANSWER_BYTES)):
                if _kind(one) == _NLMSG_DONE:
                    return found
                _check(one)
                found.append(one)

    def join(self, group: int) -> None:
        """From now on hears what is told to the group of this number."""
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)

    def heard(self) -> list[bytes]:
        """What its groups have been told since the last call. NetlinkError where that was more
        than the socket keeps."""
        found: list[bytes] = []
        while True:
            try:
                found += _parted(self._socket.recv(_ANSWER_BYTES, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return found
            except OSError as error:
                raise NetlinkError(error.errno, error.strerror) from error

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def _kind(message: bytes) -> int:
    return int(_HEADER.unpack_from(message)[1])


def _check(answer: bytes) -> None:
    if _kind(answer) == _NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if code:
            raise NetlinkError(-code, os.strerror(-code))


def _parted(data: bytes) -> Iterator[bytes]:
    """The messages that lie one after the other in `data`."""
    at = 0
    while at + _HEADER.size <= len(data):
        (length,) = struct.unpack_from("=I", data, at)
        yield data[at : at + length]
        at += (length + 3) & ~3


def message(kind: int, flags: int, body: bytes) -> bytes:
    """A request: its kind (linux/rtnetlink.h), flags beside REQUEST, what follows the header."""
    return _HEADER.pack(_HEADER.size + len(body), kind, REQUEST | flags, 0, 0) + body


def attribute(kind: int, payload: bytes) -> bytes:
    """An attribute, padded."""
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + bytes(-length % 4)


def nested(kind: int, payload: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind | _NESTED, payload)


def text(kind: int, words: str) -> bytes:
    """An attribute that is a string with its zero at the end."""
    return attribute(kind, words.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    """An attribute of 32 bits."""
    return attribute(kind, struct.pack("=I", value))


def attributes(data: memoryview) -> dict[int, memoryview]:
    """The attributes that lie one after the other in `data`, by kind."""
    found = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _KIND_MASK] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found


def of_answer(answer: bytes, header_bytes: int) -> dict[int, memoryview]:
    """The attributes of an answer whose own header, after netlink's, has so many bytes."""
    return attributes(memoryview(answer)[_HEADER.size + header_bytes :])
