"""Unwraps captured packets down to TCP, and names what else they carry. Pure.

VLAN, PPPoE, MPLS, GRE, IP in IP, VXLAN and GTP-U headers are removed. Their bytes do not count in
lengths. The lab's links have no such headers, and downloads shall take equally long there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from linklab.core.errors import LinklabError
from linklab.core.frames import ETHERNET_BYTES, FRAME_BYTES, SEGMENT_BYTES
from linklab.importers.packet_file import Packet

IP_4, IP_6 = 0x0800, 0x86DD
_VLANS: Final = (0x8100, 0x88A8, 0x9100)
_MPLS: Final = (0x8847, 0x8848)
_PPPOE, _BRIDGED, _PPP = 0x8864, 0x6558, 0x880B
_ETHERTYPES: Final = {
    0x0806: "ARP",
    0x8863: "PPPoE's discovery",
    0x888E: "EAPOL",
    0x88CC: "LLDP",
    0x88E5: "MACsec",
}
_PPP_TYPES: Final = {0x21: IP_4, 0x57: IP_6}

TCP: Final = "TCP"
_SYN, _ACK = 0x02, 0x10
FRAGMENT: Final = "fragments of IP"
CUT: Final = "packets that were cut off before TCP's header ended"

_UDP = 17
_PROTOCOLS: Final = {
    1: "ICMP",
    2: "IGMP",
    50: "ESP",
    51: "AH",
    58: "ICMPv6",
    132: "SCTP",
}
_OPTIONS_6: Final = (0, 43, 60)
"""IPv6's headers between its own and TCP's: hop-by-hop, routing, destination."""

_GTP_U, _VXLAN = 2152, 4789
_PORTS: Final = {
    443: "QUIC",
    500: "IKE",
    4500: "ESP in UDP",
    1194: "OpenVPN",
    1701: "L2TP",
    51820: "WireGuard",
}

_MAX_DEPTH = 16
"""The largest number of headers around TCP; real packets have fewer."""

SLL: Final = 113
SLL_2: Final = 276

_HEADERS: Final = FRAME_BYTES - SEGMENT_BYTES
"""The bytes of a full frame that are not payload of TCP."""

_ALLOWED = "Ethernet, raw IP, Linux' cooked headers, PPP, loopback"
_UNREAD: Final = {
    105: "802.11 of a monitor",
    119: "802.11 of a monitor, with Prism headers",
    127: "802.11 of a monitor, with radiotap headers",
    147: "a private link type (147)",
    187: "Bluetooth",
    201: "Bluetooth",
    189: "USB",
    220: "USB",
}


@dataclass(frozen=True, slots=True)
class InnerPacket:
    """The content of a captured packet.

    Attributes:
        name: TCP, or the name of something else.
        packet: for TCP, the innermost IP packet.
        length: for TCP, the length of that packet before truncation.
        segment_at: for TCP, the offset of TCP's header in `packet`.
        source, destination: addresses of the innermost IP packet.
        ip_at: the offset of the innermost IP packet in the captured one.
    """

    name: str
    packet: bytes = b""
    length: int = 0
    segment_at: int = 0
    source: bytes = b""
    destination: bytes = b""
    ip_at: int = 0

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


def frame_bytes(inner: InnerPacket, length: int) -> int:
    """Returns how long the content of a captured packet of `length` bytes is as a frame of Ethernet.

    Packets that the kernel or the card joined count as the frames that they were on the wire.
    """
    frame = length - inner.ip_at + ETHERNET_BYTES
    joined = max(math.ceil((frame - _HEADERS) / (FRAME_BYTES - _HEADERS)), 1)
    return frame + (joined - 1) * _HEADERS


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
        known = _UNREAD.get(packet.link_type, f"link type {packet.link_type}")
        raise UnreadableError(f"{known} is not read; allowed: {_ALLOWED}")
    try:
        kind, at = begin(packet.content)
        return _unwrapped(kind, packet.content, at, packet.length)
    except IndexError:
        return InnerPacket(CUT)


def _ethernet(content: bytes) -> tuple[int, int]:
    return _number(content, 12), 14


def _raw(content: bytes, at: int = 0) -> tuple[int, int]:
    return {4: IP_4, 6: IP_6}.get(content[at] >> 4, 0), at


def _ppp(content: bytes, at: int = 0) -> tuple[int, int]:
    if content[at : at + 2] == b"\xff\x03":
        at += 2
    size = 1 if content[at] & 1 else 2
    return _PPP_TYPES.get(int.from_bytes(content[at : at + size], "big"), _PPP), at + size


_LINKS: Final[dict[int, Callable[[bytes], tuple[int, int]]]] = {
    0: lambda content: _raw(content, 4),
    1: _ethernet,
    9: _ppp,
    12: _raw,
    14: _raw,
    50: _ppp,
    51: lambda content: (_PPPOE, 0),
    101: _raw,
    108: lambda content: _raw(content, 4),
    SLL: lambda content: (_number(content, 14), 16),
    166: lambda content: _ppp(content, 2),
    228: lambda content: (IP_4, 0),
    229: lambda content: (IP_6, 0),
    SLL_2: lambda content: (_number(content, 0), 20),
}
"""By link type, a function that returns the ethertype after the header, and its offset."""


def _number(content: bytes, at: int) -> int:
    return content[at] << 8 | content[at + 1]


def _unwrapped(kind: int, content: bytes, at: int, length: int) -> InnerPacket:
    for _ in range(_MAX_DEPTH):
        if kind in _VLANS:
            kind, at = _number(content, at + 2), at + 4
        elif kind == _PPPOE:
            kind, at = _ppp(content, at + 6)
        elif kind in _MPLS:
            while not content[at + 2] & 1:
                at += 4
            kind, at = _raw(content, at + 4)
        elif kind == _BRIDGED:
            kind, at = _number(content, at + 12), at + 14
        elif kind in (IP_4, IP_6):
            protocol, header = _header(kind, content, at)
            source, destination = _ends(kind, content, at)
            if isinstance(protocol, str):
                return InnerPacket(protocol, b"", 0, 0, source, destination, at)
            if protocol == 6:
                return _tcp(kind, content, at, length, header)
            inner = _inner(protocol, content, at + header)
            if isinstance(inner, str):
                return InnerPacket(inner, b"", 0, 0, source, destination, at)
            kind, at = inner
        else:
            return InnerPacket(_ETHERTYPES.get(kind, "PPP" if kind == _PPP else _type_name(kind)))
    return InnerPacket("a packet in too many headers")


def _type_name(kind: int) -> str:
    return f"ethertype 0x{kind:04x}" if kind >= 0x600 else "802.2"


def _ends(kind: int, content: bytes, at: int) -> tuple[bytes, bytes]:
    if kind == IP_4:
        return content[at + 12 : at + 16], content[at + 16 : at + 20]
    return content[at + 8 : at + 24], content[at + 24 : at + 40]


def _header(kind: int, content: bytes, at: int) -> tuple[int | str, int]:
    """Returns the protocol of an IP packet (or a name for what it is), and its headers' length."""
    if kind == IP_4:
        if _number(content, at + 6) & 0x3FFF:
            return FRAGMENT, 0
        return content[at + 9], (content[at] & 0xF) * 4
    protocol, size = content[at + 6], 40
    while protocol in _OPTIONS_6:
        protocol, size = content[at + size], size + 8 + 8 * content[at + size + 1]
    return (FRAGMENT, 0) if protocol == 44 else (protocol, size)


def _tcp(kind: int, content: bytes, at: int, length: int, header: int) -> InnerPacket:
    if len(content) < at + header + 20:
        return InnerPacket(CUT)
    told = _number(content, at + 2) if kind == IP_4 else _number(content, at + 4)
    # 0 means longer than the field can hold, such as packets that the kernel joined.
    size = (told + (0 if kind == IP_4 else 40)) if told else length - at
    return InnerPacket(TCP, content[at:], size, header, *_ends(kind, content, at), at)


def _inner(protocol: int, content: bytes, at: int) -> tuple[int, int] | str:
    """Returns what a non-TCP packet carries: an ethertype and its offset, or a name."""
    if protocol in (4, 41):
        return (IP_4 if protocol == 4 else IP_6), at
    if protocol == 47:
        return _gre(content, at)
    if protocol != _UDP:
        return _PROTOCOLS.get(protocol, f"IP's protocol {protocol}")
    ports = (_number(content, at), _number(content, at + 2))
    if _VXLAN in ports and content[at + 8] == 8:
        return _BRIDGED, at + 16
    if _GTP_U in ports and content[at + 9] == 255:
        return _raw(content, _after_gtp(content, at + 8))
    return next((_PORTS[port] for port in ports if port in _PORTS), "UDP")


def _after_gtp(content: bytes, at: int) -> int:
    """Returns where the content of GTP-U begins (3GPP TS 29.281, 5.1 and 5.2)."""
    flags = content[at]
    if not flags & 7:
        return at + 8
    at, following = at + 12, content[at + 11] if flags & 4 else 0
    while following:
        size = 4 * max(content[at], 1)
        at, following = at + size, content[at + size - 1]
    return at


def _gre(content: bytes, at: int) -> tuple[int, int] | str:
    """Unwraps GRE (RFC 2784, 2890). Version 1 is PPTP's (RFC 2637)."""
    flags, kind = _number(content, at), _number(content, at + 2)
    if flags & 7 == 1:
        size = 8 + (4 if flags & 0x1000 else 0) + (4 if flags & 0x80 else 0)
        return _ppp(content, at + size) if flags & 0x1000 else "PPTP"
    if flags & 0x4007:
        return "GRE with routes"
    return kind, at + 4 + 4 * sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
