"""Joins connections with faults: resets, early ends and small pieces.

Faults of a direction end or cut what passes that way. Times and bytes count from the connection's start, or
from the fault's if that is later.
"""

from __future__ import annotations

import asyncio
import fcntl
import heapq
import itertools
import socket
import struct
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from linklab.core.timer import Timer
from linklab.relay import connections

Direction = Literal["down", "up"]

_TRANSPARENT: Final = {
    socket.AF_INET: (socket.SOL_IP, socket.IP_TRANSPARENT),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 75),  # IPV6_TRANSPARENT of linux/in6.h
}
_MOST_WAITING_BYTES: Final = 1 << 18
_LOOK_S: Final = 0.001
"""The first pause between looks whether a peer has everything. It grows with the time that this takes."""


def make_transparent(sock: socket.socket) -> None:
    """Lets a socket have any address, also one of another host. Needs root."""
    sock.setsockopt(*_TRANSPARENT[sock.family], 1)


@dataclass(frozen=True, slots=True)
class Faults:
    """Holds the faults of one direction, for connections to a server's `port`, or to all. 0 is none.

    Attributes:
        reset_after_s: both ends are reset after this time.
        reset_bytes: both ends are reset once the receiver has these bytes.
        close_bytes: the connection ends after these bytes.
        slice_bytes: largest piece that is passed on at once.
        slice_pause_s: the time between two pieces.
    """

    reset_after_s: float = 0.0
    reset_bytes: int = 0
    close_bytes: int = 0
    slice_bytes: int = 0
    slice_pause_s: float = 0.0
    port: int = 0

    @property
    def limit_bytes(self) -> int:
        """The bytes after which the connection ends."""
        return min(filter(None, (self.reset_bytes, self.close_bytes)), default=0)


NO_FAULTS: Final = Faults()


class _Alarms:
    """Calls functions at times of the monotonic clock, in nanoseconds. asyncio may be late by a
    millisecond."""

    def __init__(self) -> None:
        self._timer = Timer()
        self._number = itertools.count()
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        asyncio.get_running_loop().add_reader(self._timer.fileno(), self._ring)

    def at(self, when_ns: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when_ns, next(self._number), call))
        self._timer.set(self._due[0][0])

    def _ring(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic_ns():
            heapq.heappop(self._due)[2]()
        self._timer.set(self._due[0][0] if self._due else 1 << 62)


class _End(connections._End):
    """Handles one of two joined connections. `way` takes what arrives here."""

    way: _Way | None = None

    def data_received(self, data: bytes) -> None:
        if self.way is None:
            super().data_received(data)
        else:
            self.way.take(data)

    def eof_received(self) -> bool:
        self._has_ended = True
        if self.way is not None:
            self.way.end()
        return True

    def resume_reading(self) -> None:
        if self.way is None or not self.way.is_full:
            super().resume_reading()


class _Way:
    """Passes on what `source` receives by `sink`, with the faults of a direction."""

    def __init__(self, joint: _Joint, direction: Direction, source: _End, sink: _End) -> None:
        self._joint, self._direction = joint, direction
        self._source, self._sink = source, sink
        self._waiting = bytearray()
        self._passed_bytes = self._start_bytes = self._due_ns = 0
        self._is_woken = self._has_ended = False
        self.is_done = False

    @property
    def is_full(self) -> bool:
        """Whether no more may be read for now."""
        return len(self._waiting) >= _MOST_WAITING_BYTES

    def restart(self) -> None:
        """Counts bytes from here on."""
        self._start_bytes = self._passed_bytes

    def take(self, data: bytes) -> None:
        if not self._joint.is_cut:
            self._waiting += data
            self.pass_on()

    def end(self) -> None:
        """Passes on the source's end."""
        self._has_ended = True
        if self._joint.is_cut:
            self._joint.end(self._source)
        else:
            self.pass_on()

    def pass_on(self) -> None:
        """Passes on what the faults allow now."""
        faults = self._joint.faults(self._direction)
        limit_bytes = faults.limit_bytes
        while self._waiting and not self._joint.is_cut:
            now_ns = time.monotonic_ns()
            size = len(self._waiting)
            if faults.slice_bytes:
                if now_ns < self._due_ns:
                    self._wake()
                    break
                size = min(size, faults.slice_bytes)
                self._due_ns = now_ns + round(faults.slice_pause_s * 1e9)
            if limit_bytes:
                size = min(size, self._start_bytes + limit_bytes - self._passed_bytes)
            self._sink.transport.write(bytes(self._waiting[:size]))
            del self._waiting[:size]
            self._passed_bytes += size
            if limit_bytes and self._passed_bytes == self._start_bytes + limit_bytes:
                self._joint.cut(self._sink, resets=limit_bytes == faults.reset_bytes)
        if self.is_full:
            self._source.transport.pause_reading()
        elif not self._sink.transport.get_write_buffer_size():
            self._source.resume_reading()
        if self._has_ended and not self._waiting and not self.is_done and not self._joint.is_cut:
            self.is_done = True
            self._sink.transport.write_eof()
            self._joint.close_if_done()

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._joint.relay.alarms.at(self._due_ns, self._woken)

    def _woken(self) -> None:
        self._is_woken = False
        if not self._sink.transport.is_closing():
            self.pass_on()


class _Joint:
    """Holds a client's connection and the one to its server, `near` and `far`."""

    def __init__(self, relay: Relay, near: _End, far: _End) -> None:
        self.relay, self._near, self._far = relay, near, far
        self._port: int = near.transport.get_extra_info("sockname")[1]
        self.is_cut = self._drains = False
        self._resets: dict[Direction, int] = {"down": 0, "up": 0}
        self._ways: dict[Direction, _Way] = {
            "down": _Way(self, "down", far, near),
            "up": _Way(self, "up", near, far),
        }
        far.way, near.way = self._ways.values()
        for one in (near, far):
            one._closed = self._forget
        relay.joints[self] = None
        for direction in self._ways:
            self._set_reset(direction)
        near.join(far)

    def _forget(self) -> None:
        self.relay.joints.pop(self, None)

    def faults(self, direction: Direction) -> Faults:
        """Returns the faults of a direction that this connection meets."""
        faults = self.relay.faults[direction]
        return faults if faults.port in (0, self._port) else NO_FAULTS

    def change(self, direction: Direction, before: Faults, after: Faults) -> None:
        """Takes on changed faults of a direction."""
        if self.is_cut:
            return
        if before.port != after.port or before.limit_bytes != after.limit_bytes:
            self._ways[direction].restart()
        if before.port != after.port or before.reset_after_s != after.reset_after_s:
            self._set_reset(direction)
        self._ways[direction].pass_on()

    def _set_reset(self, direction: Direction) -> None:
        self._resets[direction] += 1
        number, after_s = self._resets[direction], self.faults(direction).reset_after_s

        def reset() -> None:
            if self._resets[direction] == number and self in self.relay.joints:
                self._break_off()

        if after_s:
            self.relay.alarms.at(time.monotonic_ns() + round(after_s * 1e9), reset)

    def _break_off(self) -> None:
        self.is_cut = True
        self._near.break_off()
        self._far.break_off()

    def cut(self, sink: _End, *, resets: bool) -> None:
        """Ends the connection after what `sink` was given."""
        self.is_cut = True
        self._near._other = self._far._other = None
        if resets:
            self._reset_when_received(sink, time.monotonic_ns())
            return
        self._drains = True  # With data unread, a socket that is closed resets its connection.
        self._far.transport.close()
        self._near.transport.write_eof()
        if self._near._has_ended:
            self._near.transport.close()
        else:
            self._near.transport.resume_reading()

    def end(self, source: _End) -> None:
        """Closes a connection that has ended here, once its peer has ended it too."""
        if self._drains:
            source.transport.close()

    def _reset_when_received(self, sink: _End, since_ns: int) -> None:
        """Resets both ends once the peer of `sink` has everything. A reset discards what is not sent."""
        if sink.transport.is_closing():
            self._break_off()
            return
        sock = sink.transport.get_extra_info("socket")
        (unsent,) = struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))
        if not unsent and not sink.transport.get_write_buffer_size():
            self._break_off()
            return
        now_ns = time.monotonic_ns()
        pause_ns = round(_LOOK_S * 1e9) + (now_ns - since_ns) // 100
        self.relay.alarms.at(now_ns + pause_ns, lambda: self._reset_when_received(sink, since_ns))

    def close_if_done(self) -> None:
        """Closes both connections once both peers have ended."""
        if all(way.is_done for way in self._ways.values()):
            self._near.transport.close()
            self._far.transport.close()


class Relay:
    """Joins each connection that its sockets accept to one from the peer's address to where the peer
    wanted, with the faults of each direction."""

    def __init__(self) -> None:
        self.alarms = _Alarms()
        self.faults: dict[Direction, Faults] = {"down": NO_FAULTS, "up": NO_FAULTS}
        self.joints: dict[_Joint, None] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def listen(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(lambda: _End(self._accepted), sock=sock, backlog=1024)

    def set(self, faults: dict[Direction, Faults]) -> None:
        before, self.faults = self.faults, faults
        for direction in faults:
            if faults[direction] != before[direction]:
                for joint in [*self.joints]:
                    joint.change(direction, before[direction], faults[direction])

    def _accepted(self, near: connections._End) -> None:
        task = asyncio.create_task(self._join(near))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _join(self, near: connections._End) -> None:
        assert isinstance(near, _End)
        try:
            far = await self._connected(near)
        except (OSError, TimeoutError):
            near.break_off()
            return
        _Joint(self, near, far)

    async def _connected(self, near: _End) -> _End:
        """Opens a connection from the address of `near`'s peer. Raises OSError, TimeoutError."""
        loop = asyncio.get_running_loop()
        peer, wanted = (near.transport.get_extra_info(one) for one in ("peername", "sockname"))
        sock = socket.socket(near.transport.get_extra_info("socket").family)
        try:
            sock.setblocking(False)
            make_transparent(sock)
            sock.bind((peer[0], 0))
            async with asyncio.timeout(connections.CONNECT_TIMEOUT_S):
                await loop.sock_connect(sock, wanted[:2])
            return (await loop.create_connection(_End, sock=sock))[1]
        except BaseException:
            sock.close()
            raise
