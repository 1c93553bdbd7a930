"""Measures the round trips of a host's TCP segments from its packets, and finds the data it gets. Pure.

A round trip is the time from the last segment that an acknowledgement covers until that
acknowledgement. There is none if it covers a segment that was sent twice (Karn's algorithm, RFC 6298
3, as Linux has it). SYN and FIN are segments, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

_IPV4: Final = struct.Struct("!BxH5xB2x4s4s")
_IPV6: Final = struct.Struct("!4xHBx16s16s")
_TCP: Final = struct.Struct("!HHIIBB")
_TCP_PROTOCOL: Final = 6
_FIN, _SYN, _ACK = 0x01, 0x02, 0x10
_SEQUENCE_NUMBERS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A measured round trip: the acknowledgement's time, the host's port, and how long it took."""

    t_ns: int
    port: int
    length_ns: int


@dataclass(slots=True)
class _Sent:
    first: int
    end: int
    t_ns: int
    is_repeated: bool


@dataclass(slots=True)
class _Connection:
    """The segments of a connection that are not acknowledged, in their order."""

    next: int | None = None
    waiting: list[_Sent] = field(default_factory=list)

    def send(self, first: int, end: int, t_ns: int) -> None:
        repeats = self.next is not None and _after(self.next, first) > 0
        for one in self.waiting if repeats else ():
            if _after(one.end, first) > 0 and _after(end, one.first) > 0:
                one.is_repeated = True
        if self.next is None or _after(end, self.next) > 0:
            self.waiting.append(_Sent(first, end, t_ns, repeats))
            self.next = end

    def acknowledge(self, number: int, t_ns: int) -> int | None:
        """Returns the round trip in nanoseconds, if there is one."""
        covered = [one for one in self.waiting if _after(number, one.end) >= 0]
        self.waiting = self.waiting[len(covered) :]
        if not covered or any(one.is_repeated for one in covered):
            return None
        return t_ns - covered[-1].t_ns


def _after(one: int, other: int) -> int:
    """Returns the distance of a sequence number behind another, which may have wrapped."""
    apart = (one - other) % _SEQUENCE_NUMBERS
    return apart - _SEQUENCE_NUMBERS if apart >= _SEQUENCE_NUMBERS // 2 else apart


def measured(packets: Iterable[tuple[int, bool, bytes]]) -> Iterator[RoundTrip]:
    """Yields the round trips of a host's segments.

    `packets` has the time in nanoseconds, whether the packet leaves the host, and the header from IP
    on. Packets of other protocols, and cut ones, do not count.
    """
    connections: dict[tuple[bytes, int, bytes, int], _Connection] = {}
    for t_ns, leaves, header in packets:
        found = _segment(header)
        if found is None:
            continue
        (source, target), first, length, acknowledged = found
        own, peer = (source, target) if leaves else (target, source)
        connection = connections.setdefault((*own, *peer), _Connection())
        if leaves and length:
            connection.send(first, (first + length) % _SEQUENCE_NUMBERS, t_ns)
        elif not leaves and acknowledged is not None:
            took_ns = connection.acknowledge(acknowledged, t_ns)
            if took_ns is not None:
                yield RoundTrip(t_ns, own[1], took_ns)


def with_data(packets: Iterable[tuple[int, bool, bytes]]) -> Iterator[int]:
    """Yields the times of packets that bring a host data, but for a single byte, which may be a SYN
    or a FIN. `packets` as of `measured`."""
    for t_ns, leaves, header in packets:
        found = None if leaves else _segment(header)
        if found is not None and found[2] > 1:
            yield t_ns


_End = tuple[bytes, int]


def _segment(header: bytes) -> tuple[tuple[_End, _End], int, int, int | None] | None:
    """Returns both ends of a segment, its sequence number and length, and what it acknowledges."""
    version = header[0] >> 4 if header else 0
    if version == 4 and len(header) >= _IPV4.size:
        first_byte, total_bytes, protocol, source, target = _IPV4.unpack_from(header)
        ip_bytes = (first_byte & 0xF) * 4
    elif version == 6 and len(header) >= _IPV6.size:
        payload_bytes, protocol, source, target = _IPV6.unpack_from(header)
        ip_bytes = _IPV6.size
        total_bytes = ip_bytes + payload_bytes
    else:
        return None
    if protocol != _TCP_PROTOCOL or len(header) < ip_bytes + _TCP.size:
        return None
    from_port, to_port, first, acknowledged, offset, flags = _TCP.unpack_from(header, ip_bytes)
    length = total_bytes - ip_bytes - (offset >> 4) * 4
    length += bool(flags & _SYN) + bool(flags & _FIN)
    ends = (source, from_port), (target, to_port)
    return ends, first, length, acknowledged if flags & _ACK else None
