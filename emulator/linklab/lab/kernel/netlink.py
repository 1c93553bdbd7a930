"""Sends prepared messages to the kernel over netlink sockets (netlink(7), rtnetlink(7)).

A lab changes rates fifty times a second and reads its queues as often. One change takes 1 ms of a
core by pyroute2 and 20 ms by a tc process. A prepared message takes one system call. Importing
pyroute2 would also take half a second of a guest's boot. `core/netlink_messages.py` makes and reads
messages.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

from linklab.core.netlink_messages import HEADER

ROUTE, SOCK_DIAG, GENERIC = 0, 4, 16
"""A socket's protocol: interfaces and routes, sockets, everything else (linux/netlink.h)."""

_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_ANSWER_BYTES = 32768


class NetlinkError(OSError):
    """The kernel refused a request."""


class Channel:
    """A netlink socket of one protocol. It stays in the network namespace that the calling thread
    is in."""

    def __init__(self, protocol: int = ROUTE) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol
        )
        self._socket.bind((0, 0))

    def request(self, message: bytes | bytearray) -> bytes:
        """Sends one message and returns the kernel's answer. Raises NetlinkError if the kernel
        refuses."""
        self._socket.send(message)
        answer = self._socket.recv(_ANSWER_BYTES)
        _check(answer)
        return answer

    def dump(self, message: bytes) -> list[bytes]:
        """Sends one message with DUMP and returns all messages of the answer. Raises NetlinkError
        if the kernel refuses."""
        self._socket.send(message)
        found: list[bytes] = []
        while True:
            for one in _parted(self._socket.recv(_ANSWER_BYTES)):
                if _kind(one) == _NLMSG_DONE:
                    return found
                _check(one)
                found.append(one)

    def join(self, group: int) -> None:
        """Subscribes to the multicast group of this number."""
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)

    def heard(self) -> list[bytes]:
        """Returns the groups' messages since the last call. Raises NetlinkError if the socket's
        buffer overflowed."""
        found: list[bytes] = []
        while True:
            try:
                found += _parted(self._socket.recv(_ANSWER_BYTES, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return found
            except OSError as error:
                raise NetlinkError(error.errno, error.strerror) from error

    def close(self) -> None:
        self._socket.close()


def _kind(message: bytes) -> int:
    return int(HEADER.unpack_from(message)[1])


def _check(answer: bytes) -> None:
    if _kind(answer) == _NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", answer, HEADER.size)
        if code:
            raise NetlinkError(-code, os.strerror(-code))


def _parted(data: bytes) -> Iterator[bytes]:
    """Yields the consecutive messages in `data`."""
    at = 0
    while at + HEADER.size <= len(data):
        (length,) = struct.unpack_from("=I", data, at)
        yield data[at : at + length]
        at += (length + 3) & ~3
