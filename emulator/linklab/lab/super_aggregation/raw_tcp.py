"""Implements a TCP connection that only sends a request and receives, on a raw socket (raw(7)).
The program decides what it acknowledges.

The kernel does not know the connection and would answer with a reset. So a listening socket holds
the port and drops everything. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from linklab.core.frames import IPV4_BYTES, MTU_BYTES, SEGMENT_BYTES
from linklab.lab.kernel import socket_options
from linklab.lab.super_aggregation import tcp_segment
from linklab.lab.super_aggregation.tcp_segment import ACK, FIN, RST, SYN, Segment

if TYPE_CHECKING:
    from linklab.lab.super_aggregation.other_way import OtherWay

DELAY_S: Final = 0.04
"""The longest time that an acknowledgement waits for a second segment (Linux TCP_DELACK_MIN)."""

_AT_ONCE: Final = 16
"""The number of first segments that are acknowledged one by one (Linux TCP_MAX_QUICKACKS)."""

_FIRST_TIMEOUT_S: Final = 1.0
"""The first retransmission timeout. It doubles each time (RFC 6298 2)."""

_SCALE_BITS: Final = 9
_WINDOW: Final = 0xFFFF
_PLAIN_HEADER_BYTES: Final = 20
_ROOM_BYTES: Final = 16 << 20


def _silent(address: str) -> socket.socket:
    """Opens a socket that listens on a free port and never answers."""
    listening = socket.socket()
    socket_options.drop_all(listening)
    listening.bind((address, 0))
    listening.listen(1)
    return listening


Arrived = Callable[[int, bytes, float, float], bool]
"""Takes each segment: its position in the stream, its bytes, its trip time by both ends' clocks,
which differ, and the current time (`time.monotonic`). Returns whether to acknowledge at once."""


class RawConnection:
    """A connection from an address of this host that sends `request`. `acknowledged` returns how
    much of the stream has arrived, `beyond` the ranges after gaps. Both are called before each
    acknowledgement. After the request, `other_way` helps."""

    def __init__(
        self,
        address: str,
        server: tuple[str, int],
        request: bytes,
        arrived: Arrived,
        acknowledged: Callable[[], int],
        beyond: Callable[[], tuple[tuple[int, int], ...]],
        other_way: OtherWay | None = None,
    ) -> None:
        self._request, self._arrived = request, arrived
        self._acknowledged, self._beyond = acknowledged, beyond
        self._other_way = other_way
        self._packets = 2 if other_way is None else other_way.packets
        self._silent = _silent(address)
        self._port: int = self._silent.getsockname()[1]
        self._server_port = server[1]
        self._ends = (socket.inet_aton(address), socket.inet_aton(server[0]))
        self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        socket_options.give_room(self._raw, _ROOM_BYTES)
        socket_options.stamp(self._raw)
        self._raw.setblocking(False)
        self._raw.bind((address, 0))
        self._raw.connect((server[0], 0))
        self._first = int.from_bytes(os.urandom(4), "big")
        self._is_asked = False
        self._base: int | None = None
        self._seen_clock = 0
        self._shown_clock = 0
        self._shown = 0
        self._end: int | None = None
        self._at_once = _AT_ONCE
        self._timeout_s = _FIRST_TIMEOUT_S
        self._delayed_s: float | None = None
        self._again_s: float | None = 0.0
        self._asked_s = 0.0

    def fileno(self) -> int:
        """Returns a descriptor that is readable when something has arrived."""
        return self._raw.fileno()

    @property
    def due_s(self) -> float | None:
        """The time of the next action without any event, None if there is none."""
        told_s = None if self._other_way is None else self._other_way.due_s
        dues = (self._delayed_s, self._again_s, told_s)
        return min((one for one in dues if one is not None), default=None)

    def look(self, now_s: float) -> None:
        """Reads what has arrived and sends what is due. Raises OSError if the connection is lost."""
        while True:
            try:
                datagram, notes, _, _ = self._raw.recvmsg(1 << 16, socket_options.NOTES_BYTES)
            except BlockingIOError:
                break
            seconds, nanoseconds = socket_options.stamped(notes)
            self._take(datagram, seconds + nanoseconds / 1e9, now_s)
        if self._again_s is not None and now_s >= self._again_s:
            self._asked_s, self._again_s = now_s, now_s + self._timeout_s
            self._timeout_s *= 2
            self._ask()
        if self._delayed_s is not None and now_s >= self._delayed_s:
            self._acknowledge()
        self._tell(now_s)

    def end(self) -> None:
        """Closes the connection to the sender and forgets it."""
        self._send(FIN | ACK)
        self._raw.close()
        self._silent.close()
        if self._other_way is not None:
            self._other_way.close()

    def _tell(self, now_s: float) -> None:
        """Tells the sender if nothing arrives. The message quotes the last acknowledgement, which
        may be lost, so that leaves again."""
        if self._other_way is not None and self._other_way.is_silent(now_s):
            self._other_way.tell(self._acknowledge())

    def _ask(self) -> None:
        if self._base is None:
            options = tcp_segment.opening(MTU_BYTES - IPV4_BYTES - _PLAIN_HEADER_BYTES, _SCALE_BITS)
            self._send(SYN, options=options)
        elif not self._is_asked:
            self._send(ACK, self._request)

    def _take(self, datagram: bytes, came_s: float, now_s: float) -> None:
        try:
            segment = tcp_segment.parsed(datagram)
        except ValueError:  # The kernel would drop it, too.
            return
        if (segment.from_port, segment.to_port) != (self._server_port, self._port):
            return
        if segment.flags & RST:
            raise ConnectionResetError("the server has reset the connection")
        if segment.flags & SYN:
            self._open(segment, now_s)
            return
        if self._base is None:
            return
        wanted = self._first + 1 + len(self._request)
        if tcp_segment.unwrapped(segment.acknowledged, wanted) >= wanted:
            self._is_asked, self._again_s = True, None
        if segment.payload or segment.flags & FIN:
            self._receive(segment, came_s, now_s)

    def _open(self, segment: Segment, now_s: float) -> None:
        """Sends the request after the first answer. A repeated answer means that it was not
        acknowledged."""
        if self._base is None:
            self._base = segment.sequence + 1
            self._seen_clock = self._shown_clock = segment.times[0] if segment.times else 0
            self._timeout_s = _FIRST_TIMEOUT_S
            self._again_s = now_s
            if self._other_way is not None:
                self._other_way.opened(now_s - self._asked_s)
        else:
            self._acknowledge()

    def _receive(self, segment: Segment, came_s: float, now_s: float) -> None:
        assert self._base is not None
        near = self._base + self._acknowledged()
        position = tcp_segment.unwrapped(segment.sequence, near) - self._base
        if segment.times is not None:
            self._seen_clock = tcp_segment.unwrapped(segment.times[0], self._seen_clock)
            if position <= self._shown:  # RFC 7323 4.3
                self._shown_clock = self._seen_clock
        if self._other_way is not None and self._other_way.heard(now_s):
            self._at_once = _AT_ONCE
        at_once = bool(segment.flags & FIN)
        if segment.flags & FIN:
            self._end = position + len(segment.payload)
        if segment.payload:
            trip_s = came_s - self._seen_clock / 1000
            at_once |= self._arrived(position, segment.payload, trip_s, now_s)
        waiting_bytes = self._acknowledged() - self._shown
        if at_once or self._at_once or waiting_bytes > (self._packets - 1) * SEGMENT_BYTES:
            self._at_once = max(0, self._at_once - 1)
            self._acknowledge()
        elif self._delayed_s is None:
            self._delayed_s = now_s + DELAY_S

    def _acknowledge(self) -> Segment:
        assert self._base is not None
        base = self._base
        blocks = ((base + begin, base + end) for begin, end in self._beyond())
        return self._send(ACK, options=tcp_segment.selected(blocks))

    def _send(self, flags: int, payload: bytes = b"", options: bytes = b"") -> Segment:
        sequence, number = self._first, 0
        if self._base is not None:
            self._shown, self._delayed_s = self._acknowledged(), None
            has_ended = self._end is not None and self._shown >= self._end
            number = self._base + self._shown + has_ended
            sequence += 1 + (len(self._request) if self._is_asked else 0)
        now_ns = time.monotonic_ns()
        clock = (now_ns // 1_000_000, self._shown_clock)
        segment = Segment(
            self._port, self._server_port, sequence, number, flags, _WINDOW, clock, payload
        )
        packet = tcp_segment.packed(segment, *self._ends, options)
        other = self._other_way if self._is_asked and flags == ACK else None
        if other is None or not other.takes(packet, now_ns / 1e9):
            with contextlib.suppress(OSError):  # A link that is down loses it.
                self._raw.send(packet)
        return segment
