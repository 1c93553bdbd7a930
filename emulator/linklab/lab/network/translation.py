"""Translates addresses and ports as a NAT does, and forgets what was idle. Pure.

Each flow has a port of its own (symmetric NAT; RFC 4787, RFC 5382). Packets of both directions keep a
flow alive. A forgotten UDP flow gets another port with the client's next packet. A forgotten TCP
connection is dead: the NAT drops what is no SYN. It also drops what would begin too many flows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

TCP: Final = 6
UDP: Final = 17
_ICMP = 1
_FIRST_PORT, _LAST_PORT = 1024, 65535
MOST_FLOWS: Final = 2**15
"""About half of the ports, so that a free one is soon drawn."""
_SYN, _ACK = 0x02, 0x10
_CHECKSUM_AT: Final = {TCP: 16, UDP: 6}
_LEAST_BYTES: Final = {TCP: 20, UDP: 8}
_IP_CHECKSUM_AT, _SOURCE_AT, _TARGET_AT = 10, 12, 16
_IP_BYTES = 20
TARGET: Final = slice(_TARGET_AT, _IP_BYTES)
"""Where an IPv4 packet has the address that it is for."""
_ICMP_BYTES = 8
_ICMP_ERRORS = (3, 11, 12)


class Flow(NamedTuple):
    """The client's end of a flow and the far one."""

    protocol: int
    client: tuple[bytes, int]
    far: tuple[bytes, int]


@dataclass
class _Mapping:
    flow: Flow
    port: int
    used_ns: int


class Translator:
    """Holds the mappings of a NAT with one `address`. `idle_s` has a protocol's idle time, after which
    a mapping is forgotten. `random` draws the ports."""

    def __init__(self, address: bytes, idle_s: dict[int, float], random: Random) -> None:
        self._address = address
        self._random = random
        self._by_flow: dict[Flow, _Mapping] = {}
        self._by_port: dict[tuple[int, int], _Mapping] = {}
        self._idle_s = idle_s

    def set_idle(self, idle_s: dict[int, float], now_ns: int) -> None:
        """Changes the idle times of all flows but those that are forgotten by now."""
        self._forget(now_ns)
        self._idle_s = idle_s

    def translated(self, packet: bytes, now_ns: int) -> bytes | None:
        """Returns an IPv4 packet as it goes on, None if it is dropped."""
        if len(packet) < _IP_BYTES or packet[0] >> 4 != 4:
            return None
        head = (packet[0] & 0xF) * 4
        is_part = int.from_bytes(packet[6:8], "big") & 0x1FFF
        protocol, is_answer = packet[9], packet[TARGET] == self._address
        if protocol == _ICMP and is_answer:
            return self._error_back(packet, head, now_ns)
        if is_part or len(packet) < head + _LEAST_BYTES.get(protocol, 1 << 16):
            return None
        translate = self._back if is_answer else self._out
        return translate(packet, head, protocol, now_ns)

    def _out(self, packet: bytes, head: int, protocol: int, now_ns: int) -> bytes | None:
        source, target = struct.unpack_from("!HH", packet, head)
        flow = Flow(
            protocol,
            (packet[_SOURCE_AT:_TARGET_AT], source),
            (packet[TARGET], target),
        )
        mapping = self._alive(self._by_flow.get(flow), now_ns)
        if mapping is None:
            is_opening = protocol == UDP or packet[head + 13] & (_SYN | _ACK) == _SYN
            mapping = self._new(flow, now_ns) if is_opening else None
        if mapping is None:
            return None
        mapping.used_ns = now_ns
        return _changed(packet, head, protocol, _SOURCE_AT, self._address, 0, mapping.port)

    def _back(self, packet: bytes, head: int, protocol: int, now_ns: int) -> bytes | None:
        source, target = struct.unpack_from("!HH", packet, head)
        mapping = self._alive(self._by_port.get((protocol, target)), now_ns)
        if mapping is None or mapping.flow.far != (packet[_SOURCE_AT:_TARGET_AT], source):
            return None
        mapping.used_ns = now_ns
        address, port = mapping.flow.client
        return _changed(packet, head, protocol, _TARGET_AT, address, 2, port)

    def _error_back(self, packet: bytes, head: int, now_ns: int) -> bytes | None:
        """Translates an ICMP error, and the packet in it that the client sent."""
        about = head + _ICMP_BYTES
        if len(packet) < about + _IP_BYTES + 8 or packet[head] not in _ICMP_ERRORS:
            return None
        inner_head = (packet[about] & 0xF) * 4
        protocol, inner = packet[about + 9], about + inner_head
        if len(packet) < inner + 2:
            return None
        (port,) = struct.unpack_from("!H", packet, inner)
        mapping = self._alive(self._by_port.get((protocol, port)), now_ns)
        if mapping is None:
            return None
        address, client_port = mapping.flow.client
        changed = bytearray(packet)
        _put_address(changed, 0, _TARGET_AT, address)
        _put_address(changed, about, _SOURCE_AT, address)
        struct.pack_into("!H", changed, inner, client_port)
        struct.pack_into("!H", changed, head + 2, 0)
        struct.pack_into("!H", changed, head + 2, checksum(bytes(changed[head:])))
        return bytes(changed)

    def _alive(self, mapping: _Mapping | None, now_ns: int) -> _Mapping | None:
        if mapping is None:
            return None
        if now_ns - mapping.used_ns < self._idle_s[mapping.flow.protocol] * 1e9:
            return mapping
        del self._by_flow[mapping.flow]
        del self._by_port[mapping.flow.protocol, mapping.port]
        return None

    def _forget(self, now_ns: int) -> None:
        for mapping in list(self._by_port.values()):
            self._alive(mapping, now_ns)

    def _new(self, flow: Flow, now_ns: int) -> _Mapping | None:
        """Returns a mapping with a port of its own, None if there are too many."""
        if len(self._by_port) >= MOST_FLOWS:
            self._forget(now_ns)
        if len(self._by_port) >= MOST_FLOWS:
            return None
        while True:
            port = self._random.randint(_FIRST_PORT, _LAST_PORT)
            if (flow.protocol, port) not in self._by_port:
                break
        mapping = _Mapping(flow, port, 0)
        self._by_flow[flow] = self._by_port[flow.protocol, port] = mapping
        return mapping


def _changed(
    packet: bytes, head: int, protocol: int, at: int, address: bytes, port_at: int, port: int
) -> bytes:
    """Returns a packet with another address and port at one end, and right checksums (RFC 1624)."""
    changed = bytearray(packet)
    old = bytes(changed[at : at + 4])
    _put_address(changed, 0, at, address)
    old += bytes(changed[head + port_at : head + port_at + 2])
    struct.pack_into("!H", changed, head + port_at, port)
    place = head + _CHECKSUM_AT[protocol]
    (checksum,) = struct.unpack_from("!H", changed, place)
    if protocol == TCP or checksum:  # UDP's may be left out.
        updated = _updated(checksum, old, address + struct.pack("!H", port))
        struct.pack_into("!H", changed, place, updated or (0xFFFF if protocol == UDP else 0))
    return bytes(changed)


def _put_address(packet: bytearray, header: int, at: int, address: bytes) -> None:
    """Changes an address of the IP header that begins at `header`, and its checksum."""
    place = header + _IP_CHECKSUM_AT
    (checksum,) = struct.unpack_from("!H", packet, place)
    old = bytes(packet[header + at : header + at + 4])
    packet[header + at : header + at + 4] = address
    struct.pack_into("!H", packet, place, _updated(checksum, old, address))


def _updated(checksum: int, old: bytes, new: bytes) -> int:
    """Returns a checksum after words of its content have changed (RFC 1624, equation 3)."""
    total = (~checksum & 0xFFFF) + sum(_words(new)) + sum(~word & 0xFFFF for word in _words(old))
    return ~_folded(total) & 0xFFFF


def checksum(content: bytes) -> int:
    """Returns the checksum of RFC 1071."""
    return ~_folded(sum(_words(content + bytes(len(content) % 2)))) & 0xFFFF


def _words(content: bytes) -> tuple[int, ...]:
    return struct.unpack(f"!{len(content) // 2}H", content)


def _folded(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
