"""Joins connections that are accepted in one network namespace to such as are made in another.

A program of its own, started by its file: what it does must not keep the player waiting. Its one
argument is a list of `Rule`s as JSON; it is in the namespace from which it connects, and listening
sockets of another are handed to it. Either end's end of data, failure and slowness are passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
import struct
import sys
from collections.abc import Iterable
from typing import Any, TypedDict

CONNECT_TIMEOUT_S = 20.0
_PIECE_BYTES = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: the peer is told that this broke.


_UNDER_WAY: set[asyncio.Task[Any]] = set()


class Rule(TypedDict):
    """A listening socket's descriptor, and where what comes there leads: an address and port as
    [HOST, PORT], or None for the very address that was asked for. `udp` is a socket that takes
    questions, each of which gets one answer (DNS).

    Who `greets` says with one byte that a connection has been accepted. `lanes` are addresses that
    all lead there, in place of `to`; over each one connection at a time is made, until that byte has
    come: what lies between may have room for one that waits.
    """

    descriptor: int
    to: tuple[str, int] | None
    udp: bool
    greets: bool
    lanes: list[tuple[str, int]]


GREETING = b"\x06"


def _break(writer: asyncio.StreamWriter) -> None:
    """Lets the peer see a failure, not an end."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything, as fast as it is taken, and its end."""
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    writer.write_eof()


Lanes = asyncio.Queue[tuple[str, int]]
"""Those over which no connection is being made."""


def free(lanes: Iterable[tuple[str, int]]) -> Lanes:
    """All of these."""
    queue: Lanes = asyncio.Queue()
    for lane in lanes:
        queue.put_nowait(lane)
    return queue


async def _connected(
    host: str, port: int, lanes: Lanes | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection; with `lanes` over one that is free, greeted, however long those before it take.
    OSError, TimeoutError."""
    if lanes is None:
        return await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_TIMEOUT_S)
    lane = await lanes.get()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*lane)
            try:
                if await reader.read(1) != GREETING:
                    raise ConnectionResetError
            except BaseException:
                _break(writer)
                raise
            return reader, writer
    finally:
        lanes.put_nowait(lane)


async def join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    to: tuple[str, int] | None,
    *,
    greets: bool = False,
    lanes: Lanes | None = None,
) -> None:
    """Connects with `to`, or where the peer wanted to, and passes on both ways."""
    # Once one end has said all it has to, nobody else refers to this task: it would be garbage.
    this = asyncio.current_task()
    assert this is not None
    _UNDER_WAY.add(this)
    this.add_done_callback(_UNDER_WAY.discard)
    host, port = to or writer.get_extra_info("sockname")[:2]
    if greets:
        writer.write(GREETING)
    try:
        far_reader, far_writer = await _connected(host, port, lanes)
    except (OSError, TimeoutError):
        _break(writer)
        return
    ways = [
        asyncio.create_task(_pass_on(reader, far_writer)),
        asyncio.create_task(_pass_on(far_reader, writer)),
    ]
    try:
        await asyncio.gather(*ways)
    except (OSError, ValueError):
        for way in ways:
            way.cancel()
        for one in (writer, far_writer):
            _break(one)
    else:
        for one in (writer, far_writer):
            one.close()


class _Questions(asyncio.DatagramProtocol):
    """Asks `to` what is asked here, and hands back the answers."""

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
            answer = await asyncio.wait_for(loop.sock_recv(sock, _PIECE_BYTES), CONNECT_TIMEOUT_S)
            self._transport.sendto(answer, asker)


async def serve(rules: list[Rule]) -> None:
    """Until it is ended."""
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
            joins = functools.partial(join, to=to, greets=rule["greets"], lanes=lanes)
            await asyncio.start_server(joins, sock=sock, backlog=1024)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))
