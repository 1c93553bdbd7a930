"""Joins each connection that a socket accepts to one made in another network namespace.

It passes on either side's end of data, failure and back-pressure.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterable

from linklab.relay.association import Association

CONNECT_TIMEOUT_S = 20.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time. The peer gets a reset instead of an end.


GREETING = b"\x06"


class _End(asyncio.Protocol):
    """Handles one of two joined connections. Data that arrives here leaves by the other one, as
    fast as it accepts data. Data that arrives before there is an `other` waits. `accepted` is
    called once the connection is open."""

    transport: asyncio.Transport

    def __init__(self, accepted: Callable[[_End], None] = lambda end: None) -> None:
        self._accepted = accepted
        self._other: _End | None = None
        self._early = b""
        self._has_ended = False
        self._change: Callable[[bytes], bytes] = lambda data: data
        self._closed: Callable[[], None] = lambda: None

    def join(self, other: _End) -> None:
        """Passes on everything in both directions from now on."""
        self._other, other._other = other, self
        if self.transport.is_closing():
            other.break_off()
        for one in (self, other):
            one.resume_reading()
            if one._early:
                one.data_received(one._early)
            if one._has_ended:
                one.eof_received()

    def resume_reading(self) -> None:
        """Reads on, unless the peer has ended."""
        if not self._has_ended:
            self.transport.resume_reading()

    def break_off(self) -> None:
        """Resets the connection, so that the peer sees a failure and not an end."""
        sock = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        # asyncio does so for TCP, and not for Multipath TCP.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._accepted(self)

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early += data
            self.transport.pause_reading()
        else:
            self._other.transport.write(self._change(data))

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._other is not None:
            self._other.transport.write_eof()
            if self._other._has_ended:
                self.transport.close()
                self._other.transport.close()
        return True

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed()
        if exc is not None and self._other is not None:
            self._other.break_off()


Lanes = asyncio.Queue[tuple[str, int]]
"""The lanes over which no connection is being opened."""


def free(lanes: Iterable[tuple[str, int]]) -> Lanes:
    """Returns a queue of all these lanes."""
    queue: Lanes = asyncio.Queue()
    for lane in lanes:
        queue.put_nowait(lane)
    return queue


async def _connected(host: str, port: int, lanes: Lanes | None) -> _End:
    """Opens a connection. With `lanes`, waits for a free lane, however long, and for the greeting.
    Raises OSError, TimeoutError."""
    loop = asyncio.get_running_loop()
    if lanes is None:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return (await loop.create_connection(_End, host, port))[1]
    lane = await lanes.get()
    sock = socket.socket()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            sock.setblocking(False)
            sock.bind(("", 0))
            await loop.sock_connect(sock, lane)
            if await loop.sock_recv(sock, 1) != GREETING:
                raise ConnectionResetError
            return (await loop.create_connection(_End, sock=sock))[1]
    except BaseException:
        sock.close()
        raise
    finally:
        lanes.put_nowait(lane)


def _follow(near: _End, far: _End) -> None:
    """Has a UDP association that the client at `near` asks for get its socket here."""
    association = Association(
        near.transport.get_extra_info("sockname")[0],
        near.transport.get_extra_info("peername")[0],
        far.transport,
    )
    near._change, far._change = association.from_client, association.from_server
    near._closed = far._closed = association.close


async def listen(
    sock: socket.socket,
    to: tuple[str, int] | None,
    *,
    greets: bool = False,
    lanes: Lanes | None = None,
    associates: bool = False,
) -> asyncio.Server:
    """Joins each connection accepted by the socket to one to `to`, or to the address that its peer
    wanted. With `associates`, UDP associations of SOCKS5 get their sockets here."""
    under_way = set()

    async def join(near: _End) -> None:
        host, port = to or near.transport.get_extra_info("sockname")[:2]
        try:
            far = await _connected(host, port, lanes)
            if associates:
                _follow(near, far)
            near.join(far)
        except (OSError, TimeoutError):
            near.break_off()

    def accepted(near: _End) -> None:
        if greets:
            near.transport.write(GREETING)
        task = asyncio.create_task(join(near))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _End(accepted), sock=sock, backlog=1024)
