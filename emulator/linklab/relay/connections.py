"""Accepts connections in one network namespace and joins each to a connection made in another.

It is a separate program, so that it does not delay the player. Its argument is a list of `Rule`s as
JSON. It runs in the namespace from which it connects, and inherits listening sockets of the other
namespace. It passes on either side's end of data, failure and back-pressure.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # It is a program of its own, which finds no package.
    from linklab.relay.rule import Rule

CONNECT_TIMEOUT_S = 20.0
_QUESTION_BYTES = 1 << 16
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
        self._accepted(self)

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early += data
            self.transport.pause_reading()
        else:
            self._other.transport.write(data)

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


async def listen(
    sock: socket.socket,
    to: tuple[str, int] | None,
    *,
    greets: bool = False,
    lanes: Lanes | None = None,
) -> asyncio.Server:
    """Joins each connection accepted by the socket to one to `to`, or to the address that its peer
    wanted."""
    under_way = set()

    async def join(near: _End) -> None:
        host, port = to or near.transport.get_extra_info("sockname")[:2]
        try:
            near.join(await _connected(host, port, lanes))
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


class _Questions(asyncio.DatagramProtocol):
    """Forwards questions to `to`, and returns the answers."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._asking: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        task = asyncio.create_task(self._ask(data, addr))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, question: bytes, asker: Any) -> None:
        loop = asyncio.get_running_loop()
        with (
            socket.socket(type=socket.SOCK_DGRAM) as sock,
            contextlib.suppress(OSError, TimeoutError),
        ):
            sock.setblocking(False)
            sock.connect(self._to)
            await loop.sock_sendall(sock, question)
            answer = await asyncio.wait_for(
                loop.sock_recv(sock, _QUESTION_BYTES), CONNECT_TIMEOUT_S
            )
            self._transport.sendto(answer, asker)


async def serve(rules: list[Rule]) -> None:
    """Serves the rules until the process is ended."""
    loop = asyncio.get_running_loop()
    for rule in rules:
        kind = socket.SOCK_DGRAM if rule["udp"] else socket.SOCK_STREAM
        sock = socket.socket(socket.AF_INET, kind, fileno=rule["descriptor"])
        sock.setblocking(False)
        to = rule["to"] and (rule["to"][0], rule["to"][1])
        if rule["udp"] and to is not None:
            await loop.create_datagram_endpoint(functools.partial(_Questions, to), sock=sock)
        else:
            lanes = free((host, port) for host, port in rule["lanes"]) if rule["lanes"] else None
            await listen(sock, to, greets=rule["greets"], lanes=lanes)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))
