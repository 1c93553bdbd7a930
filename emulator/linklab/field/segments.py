"""Reads the TCP segments of a capture: each once, in order of time, with its device.

Linux's pseudo-device `any`, bridges, VLANs and merged captures show a packet several times. Only
the first counts. A connection belongs to the device where its SYN left last and its SYN-ACK arrived
first. Below a bridge that is the real device. Incoming connections are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dpkt

from linklab.importers import encapsulation
from linklab.importers.encapsulation import TCP, InnerPacket
from linklab.importers.packet_file import CaptureError, Packet, PacketFile

Flow = tuple[bytes, int, bytes, int]
"""Address and port of the client, then of the server."""

_LATE_S: Final = 0.1
"""A packet that is earlier than the one before it by up to this much was written late by its
processor. If the difference is larger, the clock was set back."""

_NOTED_S: Final = 0.001
"""A packet that is later than this is worth a note."""

_SET_BACK: Final = 3
"""The number of times that the clock may be set back. After more, the file is not in order."""

_SEEN_S: Final = (2.0, 0.005)
"""Equal packets within this time are duplicates: with an own number or timestamp, and without."""

_TIMED_BYTES: Final = 32
"""The size of a TCP header with timestamps."""

_TWICE: Final = 0.01
"""The share of duplicate packets from which on a note says so."""

_OTHERS: Final = (0.05, 0.5)
"""The share of other traffic from which on a note says so, and from which on rates are too wrong."""

_STRAYED: Final = 0.01
"""The share of bytes over other devices from which on a connection counts as using several."""


@dataclass(frozen=True, slots=True)
class CapturedSegment:
    """A TCP segment in an IP packet of `length` bytes, `payload` of them TCP's.

    `device` is the device of its connection.
    """

    t_s: float
    device: str
    source: bytes
    destination: bytes
    tcp: Any
    length: int
    payload: int


class InOrder:
    """Iterates over packets with times that never go back. Iterating raises CaptureError."""

    def __init__(self, packets: Iterable[Packet]) -> None:
        self._packets = packets
        self.late = 0
        self.set_back_s: list[float] = []

    def __iter__(self) -> Iterator[tuple[float, Packet]]:
        packets = iter(self._packets)
        last_s, shift_s = float("-inf"), 0.0
        one = next(packets, None)
        while one is not None:
            following = next(packets, None)
            t_s = one.t_s + shift_s
            behind_s = last_s - t_s
            if behind_s > 0:
                is_alone = following is not None and following.t_s + shift_s >= last_s
                if behind_s > _LATE_S and not is_alone:
                    shift_s += behind_s
                    self._set_back(behind_s)
                else:
                    self.late += behind_s > _NOTED_S
                t_s = last_s
            last_s = t_s
            yield t_s, one
            one = following

    def _set_back(self, behind_s: float) -> None:
        self.set_back_s.append(behind_s)
        if len(self.set_back_s) > _SET_BACK:
            raise CaptureError(
                f"its times run back more than {_SET_BACK} times; allowed: packets in order of time "
                "(reordercap puts them in order)"
            )


class _Duplicates:
    """Recognises packets that were captured twice."""

    def __init__(self) -> None:
        self._recent: dict[tuple[bytes, bytes, int], float] = {}
        self._before: dict[tuple[bytes, bytes, int], float] = {}
        self._since_s = 0.0

    def is_seen(self, t_s: float, one: InnerPacket) -> bool:
        """Tells whether this IP packet was captured before. Changes by routers are ignored."""
        packet, at = one.packet, one.segment_at
        size = (packet[at + 12] >> 4) * 4
        is_4 = packet[0] >> 4 == 4
        header = packet[4:6] + packet[12:20] if is_4 else packet[8:40]
        identity = (header, packet[at : at + 16] + packet[at + 20 : at + size], one.length)
        is_own = size >= _TIMED_BYTES or (is_4 and packet[4:6] != b"\0\0")
        if t_s - self._since_s > max(_SEEN_S):
            self._before, self._recent, self._since_s = self._recent, {}, t_s
        seen_s = self._recent.get(identity, self._before.get(identity))
        self._recent[identity] = t_s
        return seen_s is not None and t_s - seen_s <= _SEEN_S[0 if is_own else 1]


@dataclass(slots=True)
class _Survey:
    """The client's connections with their devices; `clients` has its addresses by device."""

    devices: dict[Flow, str]
    clients: dict[str, set[bytes]]
    kinds: Counter[str]


class Segments:
    """Iterates over the segments of the client's connections in a file.

    `notes` and `is_truncated` are complete at the end. Iterating raises CaptureError, OSError.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._survey = _Survey({}, {}, Counter())
        self.is_truncated = False
        self.notes: list[str] = []

    def __iter__(self) -> Iterator[CapturedSegment]:
        with self._file.open("rb") as opened:
            self._survey = _surveyed(PacketFile(opened))
        with self._file.open("rb") as opened:
            packets = PacketFile(opened)
            yield from self._segments(packets)
            self.is_truncated = packets.is_truncated

    def _segments(self, packets: PacketFile) -> Iterator[CapturedSegment]:
        in_order, once = InOrder(packets), _Duplicates()
        clients = set().union(*self._survey.clients.values())
        others: Counter[str] = Counter()
        count = twice = came_bytes = strayed_bytes = 0
        for t_s, packet in in_order:
            one = encapsulation.carried(packet)
            if one.name != TCP:
                others[one.name] += packet.length if one.destination in clients else 0
                continue
            try:
                tcp = dpkt.tcp.TCP(one.packet[one.segment_at :])
            except dpkt.Error:
                others["broken TCP"] += one.length * (one.destination in clients)
                continue
            up = (one.source, tcp.sport, one.destination, tcp.dport)
            down = (one.destination, tcp.dport, one.source, tcp.sport)
            device = self._survey.devices.get(up) or self._survey.devices.get(down)
            if device is None:
                others["TCP without its handshake"] += one.length * (one.destination in clients)
                continue
            count += 1
            if once.is_seen(t_s, one):
                twice += 1
                continue
            if down in self._survey.devices:
                came_bytes += one.length
                strayed_bytes += one.length * (_device(packet, one, up=False) not in (device, ""))
            payload = max(0, one.length - one.segment_at - tcp.off * 4)
            yield CapturedSegment(
                t_s, device, one.source, one.destination, tcp, one.length, payload
            )
        if strayed_bytes > _STRAYED * came_bytes:
            raise CaptureError(
                "its connections came over several devices; allowed: one file for each link"
            )
        self._note(in_order, count, twice)
        self._note_others(others, came_bytes)

    def _note(self, in_order: InOrder, count: int, twice: int) -> None:
        if twice > _TWICE * count:
            self.notes.append(f"{twice} of {count} packets were in it twice: they count once.")
        if in_order.late:
            self.notes.append(
                f"{in_order.late} of {count} packets stand behind later ones: taken as they stand."
            )
        for back_s in in_order.set_back_s:
            self.notes.append(
                f"The clock was set back by {round(back_s, 2):g} s: time goes on without that."
            )

    def _note_others(self, others: Counter[str], came_bytes: int) -> None:
        """Notes the client's other traffic. Raises CaptureError if that is most of the traffic."""
        other_bytes = others.total()
        if not came_bytes or other_bytes <= _OTHERS[0] * came_bytes:
            return
        share = other_bytes / (came_bytes + other_bytes)
        what = ", ".join(name for name, size in others.most_common(3) if size)
        if share > _OTHERS[1]:
            raise CaptureError(
                f"{share * 100:.0f} % of what came is not readable as downloads ({what}); allowed: mostly "
                "connections of TCP, from their handshake on"
            )
        self.notes.append(f"{share * 100:.0f} % of what came is {what}: it does not count.")

    def contents(self) -> str:
        """Names what most of the file is, if it is not TCP; for errors."""
        return ", ".join(name for name, _ in self._survey.kinds.most_common(3) if name != TCP)


def _surveyed(packets: PacketFile) -> _Survey:
    dialled: dict[Flow, str] = {}
    answered: dict[Flow, str] = {}
    kinds: Counter[str] = Counter()
    for _, packet in InOrder(packets):
        one = encapsulation.carried(packet)
        kinds[one.name] += packet.length
        if not (one.opens or one.answers):
            continue
        at = one.segment_at
        went_out = encapsulation.linked(packet).went_out
        source_port, port = (int.from_bytes(one.packet[at + n : at + n + 2], "big") for n in (0, 2))
        if one.opens:
            if went_out is not False:
                up = (one.source, source_port, one.destination, port)
                dialled[up] = _device(packet, one, up=True)
        elif went_out is not True:
            down = (one.destination, port, one.source, source_port)
            if device := _device(packet, one, up=False):
                answered.setdefault(down, device)
    devices = {flow: answered.get(flow, device) for flow, device in dialled.items()}
    clients: dict[str, set[bytes]] = {}
    for flow, device in devices.items():
        clients.setdefault(device, set()).add(flow[0])
    return _Survey(devices, clients, kinds)


UNNAMED: Final = "untold "
"""The prefix of devices that Linux's older cooked headers tell apart by an address only."""


def _device(packet: Packet, one: InnerPacket, *, up: bool) -> str:
    """Returns a packet's device; "" if it is unknown for a received packet (`up` is False)."""
    linked = encapsulation.linked(packet)
    if linked.sender:
        if not up:
            return ""
        has_address = len(linked.sender) > 2
        where = b"" if has_address else one.source[: 4 if len(one.source) == 4 else 8]
        return UNNAMED + (linked.sender + where).hex()
    return f"{packet.device or '0'}:{linked.number}" if linked.number else packet.device or "0"
