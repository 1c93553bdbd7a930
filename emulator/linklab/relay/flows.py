"""Forwards UDP datagrams from one network namespace to another, and returns the answers.

A flow is what one sender exchanges with one address. It has a socket of its own in the other
namespace, as a connection has, so that nobody else's datagrams come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

IDLE_S: Final = 120.0
"""A flow ends after this time without datagrams. RFC 4787, REQ-5 asks a NAT for two minutes."""

MOST: Final = 256
"""The most flows. A new one then ends the one that has been idle longest."""

_AT_ONCE: Final = 32
"""The most datagrams that are read from one socket before others have their turn."""

_DATAGRAM_BYTES: Final = 1 << 16

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Info:
    """Holds how a family's sockets tell the address that was sent to, and take the one to send from.

    `ask` is the option that switches it on. `kind` is that of the control message, in which the
    address is at `received_at` or `sent_at`.
    """

    family: int
    level: int
    ask: int
    kind: int
    size: int
    received_at: int
    sent_at: int
    address_bytes: int

    def read(self, info: bytes) -> str:
        at = self.received_at
        return socket.inet_ntop(self.family, info[at : at + self.address_bytes])

    def write(self, address: str) -> bytes:
        packed = bytes(self.sent_at) + socket.inet_pton(self.family, address)
        return packed + bytes(self.size - len(packed))


_INFOS: Final = {
    # IP_PKTINFO of ip(7), which the socket module lacks, and struct in_pktinfo
    socket.AF_INET: _Info(socket.AF_INET, socket.IPPROTO_IP, 8, 8, 12, 8, 4, 4),
    # struct in6_pktinfo (RFC 3542, 6)
    socket.AF_INET6: _Info(
        socket.AF_INET6,
        socket.IPPROTO_IPV6,
        socket.IPV6_RECVPKTINFO,
        socket.IPV6_PKTINFO,
        20,
        0,
        0,
        16,
    ),
}


@dataclass(slots=True)
class _Flow:
    far: socket.socket
    last_s: float


class Flows:
    """The flows of all sockets of a relay."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: OrderedDict[tuple[int, Address, str], _Flow] = OrderedDict()
        self._loop.call_later(IDLE_S / 4, self._expire)

    def take(self, sock: socket.socket, to: Address | None) -> None:
        """Forwards what arrives at a socket to `to`, or to the address that its sender wanted."""
        info = _INFOS[sock.family]
        sock.setsockopt(info.level, info.ask, 1)
        self._loop.add_reader(sock, self._arrived, sock, to)

    def _arrived(self, near: socket.socket, to: Address | None) -> None:
        info = _INFOS[near.family]
        with contextlib.suppress(OSError):
            for _ in range(_AT_ONCE):
                data, ancillary, _, sender = near.recvmsg(
                    _DATAGRAM_BYTES, socket.CMSG_SPACE(info.size)
                )
                for level, kind, told in ancillary:
                    if (level, kind) == (info.level, info.kind):
                        wanted = info.read(told)
                        self._forward(near, sender, wanted, to, data)

    def _forward(
        self, near: socket.socket, sender: Address, wanted: str, to: Address | None, data: bytes
    ) -> None:
        key = (near.fileno(), sender, wanted)
        flow = self._alive(key) or self._begun(near, key, to or (wanted, near.getsockname()[1]))
        self._used(key, flow)
        with contextlib.suppress(OSError):  # A full queue, or a refusal of an earlier datagram.
            flow.far.send(data)

    def _begun(self, near: socket.socket, key: tuple[int, Address, str], to: Address) -> _Flow:
        """Opens a flow. Raises OSError."""
        if len(self._open) >= MOST:
            self._end(next(iter(self._open)))
        far = socket.socket(type=socket.SOCK_DGRAM)
        try:
            far.setblocking(False)
            far.connect(to)
        except OSError:
            far.close()
            raise
        flow = self._open[key] = _Flow(far, self._loop.time())
        self._loop.add_reader(far, self._answered, near, key, flow)
        return flow

    def _answered(self, near: socket.socket, key: tuple[int, Address, str], flow: _Flow) -> None:
        _, sender, wanted = key
        info = _INFOS[near.family]
        source = (info.level, info.kind, info.write(wanted))
        with contextlib.suppress(OSError):
            for _ in range(_AT_ONCE):
                data = flow.far.recv(_DATAGRAM_BYTES)
                if self._alive(key) is None:
                    return
                self._used(key, flow)
                near.sendmsg([data], [source], 0, sender)

    def _alive(self, key: tuple[int, Address, str]) -> _Flow | None:
        """Returns a flow unless it has been idle for too long. Then it ends, if it has not yet."""
        flow = self._open.get(key)
        if flow is not None and self._loop.time() - flow.last_s >= IDLE_S:
            self._end(key)
            return None
        return flow

    def _used(self, key: tuple[int, Address, str], flow: _Flow) -> None:
        flow.last_s = self._loop.time()
        self._open.move_to_end(key)

    def _expire(self) -> None:
        """Closes the sockets of flows that nobody uses any more."""
        for key in list(self._open):
            if self._alive(key) is not None:
                break
        self._loop.call_later(IDLE_S / 4, self._expire)

    def _end(self, key: tuple[int, Address, str]) -> None:
        far = self._open.pop(key).far
        self._loop.remove_reader(far)
        far.close()
