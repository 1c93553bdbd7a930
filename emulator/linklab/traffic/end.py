"""Sends or receives one flow of a scenario's traffic: one end of it.

It is a program of its own, started once on each of the two hosts. Its argument is a `EndTask` as JSON.
It opens its sockets and prints an empty line. Then it reads the scenario's start from its input, in
nanoseconds of the monotonic clock. At the flow's end, or when it is told to end (SIGTERM), it prints
what it has counted, as JSON. It uses threads that block, because Linux' sleep is exact and a wait
for several sockets is not (select_estimate_accuracy).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:  # It is a program of its own, which finds no package.
    from linklab.traffic.task import EndTask

RETRY_S = 1.0
"""The time after which a failed connection is tried again."""

HELLO_S = 5.0
"""The time between two packets of a receiver, which tell the sender its address. They keep a NAT's
mapping alive, as consent checks do (RFC 7675)."""

LEAST_BYTES = 1 << 16
"""The bytes for which a reader is woken. Fewer wake-ups make virtual time faster."""

_BLOCK = bytes(1 << 18)
_LENGTH = struct.Struct("!Q")
_PACKET = struct.Struct("!QQ")
_ABORT = struct.pack("ii", 1, 0)

_ENDS = (signal.SIGTERM, signal.SIGALRM)
_MOST_PACKETS = 1 << 26

Counts = dict[str, int]


class FlowEnded(Exception):
    """The flow is at its end."""


def _end(signum: int, frame: FrameType | None) -> NoReturn:
    for one in _ENDS:
        signal.signal(one, signal.SIG_IGN)
    raise FlowEnded


class Connections:
    """Holds the open TCP connections of this end, and counts the bytes that it has received."""

    def __init__(self, task: EndTask) -> None:
        self._task = task
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.received_bytes = 0

    def prepare(self, sock: socket.socket) -> None:
        """Sets a socket's congestion control. A connection has that of its listening socket."""
        if self._task["sends"]:
            name = self._task["congestion_control"]
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except OSError as error:
                sys.exit(f"this kernel lacks the congestion control {name}: {error.strerror}")

    @contextlib.contextmanager
    def kept(self, sock: socket.socket) -> Iterator[socket.socket]:
        """Closes a connection after the block."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LEAST_BYTES)
        self._open.add(sock)
        try:
            yield sock
        finally:
            self._open.discard(sock)
            sock.close()

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Connects to the server over the flow's link. Closes the connection after the block."""
        with self.kept(_opened(self._task, socket.SOCK_STREAM)) as sock:
            self.prepare(sock)
            sock.connect((self._task["address"], self._task["port"]))
            yield sock

    def receive(self, sock: socket.socket, size_bytes: float = math.inf) -> None:
        """Receives so many bytes. Raises OSError if the connection ends before."""
        block = bytearray(1 << 20)
        left = size_bytes
        while left > 0:
            if left < LEAST_BYTES:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            came = sock.recv_into(block, int(min(left, len(block))))
            if not came:
                raise ConnectionResetError
            self._count(came)
            left -= came

    def _count(self, came_bytes: int) -> None:
        with self._lock:
            self.received_bytes += came_bytes

    def counts(self) -> Counts:
        """Returns the bytes received, with those that were not read. Aborts all connections."""
        for sock in self._open.copy():
            with contextlib.suppress(OSError):
                sock.setblocking(False)
                while not self._task["sends"] and (came := sock.recv(1 << 20)):
                    self._count(len(came))
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        return {"bytes": self.received_bytes}


def _send(sock: socket.socket, size_bytes: float = math.inf) -> None:
    left = size_bytes
    while left > 0:
        left -= sock.send(_BLOCK if left >= len(_BLOCK) else _BLOCK[: int(left)])


def _family(task: EndTask) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in task["address"] else socket.AF_INET


def _opened(task: EndTask, kind: socket.SocketKind) -> socket.socket:
    sock = socket.socket(_family(task), kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, task["device"].encode())
    return sock


def _in_thread(action: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=action, args=arguments, daemon=True)
    thread.start()
    return thread


def _sleep_until(monotonic_ns: int) -> None:
    time.sleep(max(0, monotonic_ns - time.monotonic_ns()) / 1e9)


class Listener:
    """The server's end of TCP connections. `serve` handles one of them."""

    def __init__(self, task: EndTask) -> None:
        self.connections = Connections(task)
        self._task = task
        self._listening = socket.create_server(
            (task["address"], task["port"]),
            family=_family(task),
            backlog=2 * task["connections"],
        )
        self.connections.prepare(self._listening)

    def run(self, start_ns: int) -> None:
        while True:
            _in_thread(self._serve, self._listening.accept()[0])

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), self.connections.kept(sock):
            if self._task["kind"] == "web":
                self._page(sock)
            elif self._task["sends"]:
                _send(sock)
            else:
                self.connections.receive(sock)

    def _page(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        (size_bytes,) = _LENGTH.unpack(sock.recv(_LENGTH.size, socket.MSG_WAITALL))
        if self._task["sends"]:
            _send(sock, size_bytes)
        else:
            self.connections.receive(sock, size_bytes)
            sock.send(b"\0")
        sock.recv(1)  # The other end closes.

    def counts(self) -> Counts:
        return self.connections.counts()


class BulkClient:
    """The other end of long connections."""

    def __init__(self, task: EndTask) -> None:
        self.connections = Connections(task)
        self._task = task
        with socket.socket() as probe:
            self.connections.prepare(probe)

    def run(self, start_ns: int) -> None:
        _sleep_until(start_ns + self._task["from_ns"])
        for _ in range(self._task["connections"]):
            _in_thread(self._go_on)
        while True:
            signal.pause()

    def _go_on(self) -> None:
        while True:
            with contextlib.suppress(OSError), self.connections.connected() as sock:
                if self._task["sends"]:
                    _send(sock)
                else:
                    self.connections.receive(sock)
            time.sleep(RETRY_S)

    def counts(self) -> Counts:
        return self.connections.counts()


class WebClient(BulkClient):
    """Fetches or sends pages, with pauses between them. Counts pages and their times."""

    def __init__(self, task: EndTask) -> None:
        super().__init__(task)
        self._times_ns: list[int] = []

    def run(self, start_ns: int) -> None:
        _sleep_until(start_ns + self._task["from_ns"])
        for size_bytes, pause_ns in cycle(self._task["pages"]):
            begun_ns = time.monotonic_ns()
            parts = min(self._task["connections"], size_bytes)
            done: list[int] = []
            threads = [
                _in_thread(self._part, (size_bytes + number) // parts, done)
                for number in range(parts)
            ]
            for thread in threads:
                thread.join()
            if len(done) == parts:
                self._times_ns.append(time.monotonic_ns() - begun_ns)
            time.sleep(pause_ns / 1e9)

    def _part(self, size_bytes: int, done: list[int]) -> None:
        with contextlib.suppress(OSError), self.connections.connected() as sock:
            sock.send(_LENGTH.pack(size_bytes))
            if self._task["sends"]:
                _send(sock, size_bytes)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
                if not sock.recv(1):
                    return
            else:
                self.connections.receive(sock, size_bytes)
            done.append(size_bytes)

    def counts(self) -> Counts:
        return {
            **super().counts(),
            "pages": len(self._times_ns),
            **_quantiles(Counter(self._times_ns), "page"),
        }


class CallSender:
    """The end of a call that sends."""

    def __init__(self, task: EndTask) -> None:
        self._task = task
        self._sock = _udp(task)
        self._to = (task["address"], task["port"])
        self._start_ns, self._sent = 0, 0

    def run(self, start_ns: int) -> None:
        task = self._task
        padding = bytes(task["packet_bytes"] - _PACKET.size)
        if task["listens"]:
            self._to = self._sock.recvfrom(1)[1]
            _in_thread(self._follow)
            self._start_ns = time.monotonic_ns()
        else:
            self._start_ns = start_ns + task["from_ns"]
        while True:
            due_ns = self._sent * task["packet_bytes"] * 8_000_000_000 // task["rate_bps"]
            _sleep_until(self._start_ns + due_ns)
            packet = _PACKET.pack(self._sent, time.monotonic_ns()) + padding
            self._sent += 1
            with contextlib.suppress(OSError):  # No carrier, or no room.
                self._sock.sendto(packet, socket.MSG_DONTWAIT, self._to)

    def _follow(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self._to = self._sock.recvfrom(1)[1]

    def counts(self) -> Counts:
        return {"sent": self._sent, "start_ns": self._start_ns}


class CallReceiver:
    """The end of a call that receives. Counts packets and their delay, in steps of 1 us."""

    def __init__(self, task: EndTask) -> None:
        self._task = task
        self._sock = _udp(task)
        self._bytes, self._packets, self._last = 0, 0, -1
        self._delays_us: Counter[int] = Counter()

    def run(self, start_ns: int) -> None:
        if not self._task["listens"]:
            _sleep_until(start_ns + self._task["from_ns"])
            _in_thread(self._say_hello)
        seen = bytearray(1 << 16)
        while True:
            with contextlib.suppress(OSError, struct.error):
                packet = self._sock.recv(1 << 16)
                number, sent_ns = _PACKET.unpack_from(packet)
                delay_us = (time.monotonic_ns() - sent_ns) // 1000
                if number >= _MOST_PACKETS or delay_us < 0:
                    continue  # It is of another program.
                if number >= len(seen):
                    seen.extend(bytes(number + 1))
                self._delays_us[delay_us] += 1
                self._bytes += len(packet)
                self._packets += not seen[number]
                self._last = max(self._last, number)
                seen[number] = 1

    def _say_hello(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self._sock.sendto(b"\0", (self._task["address"], self._task["port"]))
            time.sleep(HELLO_S if self._packets else RETRY_S)

    def counts(self) -> Counts:
        delays = Counter({delay_us * 1000: count for delay_us, count in self._delays_us.items()})
        return {
            "bytes": self._bytes,
            "packets": self._packets,
            "numbered": self._last + 1,
            **_quantiles(delays, "delay"),
        }


def _udp(task: EndTask) -> socket.socket:
    if not task["listens"]:
        return _opened(task, socket.SOCK_DGRAM)
    sock = socket.socket(_family(task), socket.SOCK_DGRAM)
    sock.bind((task["address"], task["port"]))
    return sock


def _quantiles(times_ns: Counter[int], name: str) -> Counts:
    """Returns the median, and the times that 95 % and 99 % have at most. None of no times."""
    found: Counts = {}
    for percent in (50, 95, 99):
        left = math.ceil(times_ns.total() * percent / 100)
        for time_ns in sorted(times_ns):
            left -= times_ns[time_ns]
            if left <= 0:
                found[f"{name}_p{percent}_ns"] = time_ns
                break
    return found


End = Listener | BulkClient | CallSender | CallReceiver


def _made(task: EndTask) -> End:
    if task["kind"] == "call":
        return CallSender(task) if task["sends"] else CallReceiver(task)
    if task["listens"]:
        return Listener(task)
    return WebClient(task) if task["kind"] == "web" else BulkClient(task)


def main(task: EndTask) -> None:
    try:
        end = _made(task)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        sys.exit(f"port {task['port']} of {task['address']}: {why}")
    for signum in _ENDS:
        signal.signal(signum, _end)
    try:
        print(flush=True)
        start_ns = int(sys.stdin.readline())
        if task["to_ns"] is not None:
            left_ns = start_ns + task["to_ns"] - time.monotonic_ns()
            signal.setitimer(signal.ITIMER_REAL, max(1, left_ns) / 1e9)
        end.run(start_ns)
    except FlowEnded:
        print(json.dumps(end.counts()), flush=True)
        os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
