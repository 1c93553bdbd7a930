"""Reads captured packets down to TCP, and names what else they carry. Pure.

Phones and Linux write Ethernet (also of Wi-Fi), raw IP (of modems) and the headers of the device `any`.
VLAN tags are removed. Their bytes do not count in lengths: the lab's links have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from linklab.core.errors import LinklabError
from linklab.importers.packet_file import Packet

_IP_4, _IP_6 = 0x0800, 0x86DD
_VLANS: Final = (0x8100, 0x88A8)

TCP: Final = "TCP"
_SYN, _ACK = 0x02, 0x10
FRAGMENT: Final = "fragments of IP"
CUT: Final = "packets that were cut off before TCP's header ended"

_TCP, _UDP = 6, 17
_PROTOCOLS: Final = {1: "ICMP", 50: "ESP", 58: "ICMPv6"}
_OPTIONS_6: Final = (0, 43, 60)
"""IPv6's headers between its own and TCP's: hop-by-hop, routing, destination."""

_PORTS: Final = {443: "QUIC", 4500: "ESP in UDP", 1194: "OpenVPN", 51820: "WireGuard"}

SLL: Final = 113
SLL_2: Final = 276

_ALLOWED = "Ethernet, raw IP, Linux' cooked headers"


@dataclass(frozen=True, slots=True)
class InnerPacket:
    """The content of a captured packet.

    Attributes:
        name: TCP, or the name of something else.
        packet: for TCP, the IP packet.
        length: for TCP, the length of that packet before truncation.
        segment_at: for TCP, the offset of TCP's header in `packet`.
        source, destination: addresses of the IP packet.
    """

    name: str
    packet: bytes = b""
    length: int = 0
    segment_at: int = 0
    source: bytes = b""
    destination: bytes = b""

    @property
    def opens(self) -> bool:
        """Whether it is TCP's first packet of a client."""
        return self._handshake == _SYN

    @property
    def answers(self) -> bool:
        """Whether it is TCP's first packet of a server."""
        return self._handshake == _SYN | _ACK

    @property
    def _handshake(self) -> int:
        return self.packet[self.segment_at + 13] & (_SYN | _ACK) if self.name == TCP else 0


@dataclass(frozen=True, slots=True)
class Linked:
    """The header of an IP packet in captures of Linux's pseudo-device `any`.

    Attributes:
        number: number of the device; 0 if unknown.
        went_out: whether the packet was sent; None if unknown.
        sender: link-layer address of the sending device.
    """

    number: int = 0
    went_out: bool | None = None
    sender: bytes = b""


class UnreadableError(LinklabError, ValueError):
    """The link type is not supported. The message names it."""


def linked(packet: Packet) -> Linked:
    """Reads Linux's cooked header; other headers give an empty value."""
    link_type, content = packet.link_type, packet.content
    if link_type == SLL and len(content) >= 16:
        size = min(_number(content, 4), 8)
        return Linked(0, content[:2] == b"\0\4", content[2:4] + content[6 : 6 + size])
    if link_type == SLL_2 and len(content) >= 20:
        return Linked(int.from_bytes(content[4:8], "big"), content[10] == 4)
    return Linked()


def carried(packet: Packet) -> InnerPacket:
    """Unwraps a packet. Raises UnreadableError if the link type is not supported."""
    begin = _LINKS.get(packet.link_type)
    if begin is None:
        raise UnreadableError(f"link type {packet.link_type} is not read; allowed: {_ALLOWED}")
    try:
        kind, at = begin(packet.content)
        return _unwrapped(kind, packet.content, at, packet.length)
    except IndexError:
        return InnerPacket(CUT)


def _raw(content: bytes) -> tuple[int, int]:
    return {4: _IP_4, 6: _IP_6}.get(content[0] >> 4, 0), 0


_LINKS: Final[dict[int, Callable[[bytes], tuple[int, int]]]] = {
    1: lambda content: (_number(content, 12), 14),
    12: _raw,
    14: _raw,
    101: _raw,
    SLL: lambda content: (_number(content, 14), 16),
    228: _raw,
    229: _raw,
    SLL_2: lambda content: (_number(content, 0), 20),
}
"""By link type, a function that returns the ethertype after the header, and its offset."""


def _number(content: bytes, at: int) -> int:
    return content[at] << 8 | content[at + 1]


def _unwrapped(kind: int, content: bytes, at: int, length: int) -> InnerPacket:
    while kind in _VLANS:
        kind, at = _number(content, at + 2), at + 4
    if kind not in (_IP_4, _IP_6):
        return InnerPacket(f"ethertype 0x{kind:04x}")
    protocol, header = _header(kind, content, at)
    if protocol == _TCP:
        return _tcp(kind, content, at, length, header)
    if protocol is None:
        name = FRAGMENT
    elif protocol == _UDP:
        ports = (_number(content, at + header), _number(content, at + header + 2))
        name = next((_PORTS[port] for port in ports if port in _PORTS), "UDP")
    else:
        name = _PROTOCOLS.get(protocol, f"IP's protocol {protocol}")
    return InnerPacket(name, b"", 0, 0, *_ends(kind, content, at))


def _ends(kind: int, content: bytes, at: int) -> tuple[bytes, bytes]:
    if kind == _IP_4:
        return content[at + 12 : at + 16], content[at + 16 : at + 20]
    return content[at + 8 : at + 24], content[at + 24 : at + 40]


def _header(kind: int, content: bytes, at: int) -> tuple[int | None, int]:
    """Returns the protocol of an IP packet (None of a fragment), and its headers' length."""
    if kind == _IP_4:
        if _number(content, at + 6) & 0x3FFF:
            return None, 0
        return content[at + 9], (content[at] & 0xF) * 4
    protocol, size = content[at + 6], 40
    while protocol in _OPTIONS_6:
        protocol, size = content[at + size], size + 8 + 8 * content[at + size + 1]
    return (None, 0) if protocol == 44 else (protocol, size)


def _tcp(kind: int, content: bytes, at: int, length: int, header: int) -> InnerPacket:
    if len(content) < at + header + 20:
        return InnerPacket(CUT)
    told = _number(content, at + 2) if kind == _IP_4 else _number(content, at + 4)
    # 0 means longer than the field can hold, such as packets that the kernel joined.
    size = (told + (0 if kind == _IP_4 else 40)) if told else length - at
    return InnerPacket(TCP, content[at:], size, header, *_ends(kind, content, at))
