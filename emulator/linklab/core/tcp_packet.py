"""TCP's acknowledgements as packets of IPv4 (RFC 791 3.1, RFC 9293 3.1). Pure."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, replace
from typing import Final

_PROTOCOL: Final = 6
_ACK: Final = 0x10
_LEAST_HEADER_BYTES: Final = 20
_SOURCE, _DESTINATION = slice(12, 16), slice(16, 20)
_TCP: Final = struct.Struct("!HHIIBBHHH")
_NUMBERS: Final = 2**32


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An acknowledgement that carries nothing else. `port` is its sender's, `number` the next byte
    that is expected, `window` as it stands in the header, in units that both ends have agreed on;
    `options` are TCP's."""

    ip_header: bytes
    port: int
    to_port: int
    sequence: int
    number: int
    window: int
    options: bytes

    @property
    def server(self) -> str:
        """The address that it goes to."""
        return str(ipaddress.IPv4Address(self.ip_header[_DESTINATION]))

    def after(self, other: Acknowledgement) -> int:
        """How many bytes more it acknowledges than another one of its connection."""
        return (self.number - other.number) % _NUMBERS

    def but(self, kept_bytes: int) -> Acknowledgement:
        """The same but for the last bytes."""
        return replace(self, number=(self.number - kept_bytes) % _NUMBERS)

    def frozen(self, kept_bytes: int) -> Acknowledgement:
        """The same but for the last bytes, and with a window of 0."""
        return replace(self.but(kept_bytes), window=0)

    def packet(self) -> bytes:
        """The packet, with TCP's checksum."""
        words = (_TCP.size + len(self.options)) // 4 << 4
        fields = (self.port, self.to_port, self.sequence, self.number, words, _ACK, self.window)
        segment = _TCP.pack(*fields, 0, 0) + self.options
        addresses = self.ip_header[_SOURCE] + self.ip_header[_DESTINATION]
        pseudo = addresses + struct.pack("!HH", _PROTOCOL, len(segment))
        checksum = _checksum(pseudo + segment)
        return self.ip_header + _TCP.pack(*fields, checksum, 0) + self.options


def read(packet: bytes) -> Acknowledgement | None:
    """What a packet acknowledges, from IP's header on; None where it is of another kind, or is cut
    off in its headers."""
    if len(packet) < 2 * _LEAST_HEADER_BYTES or packet[0] >> 4 != 4:
        return None
    at = (packet[0] & 15) * 4
    if packet[9] != _PROTOCOL or len(packet) < at + _TCP.size:
        return None
    port, to_port, sequence, number, words, flags, window, _, _ = _TCP.unpack_from(packet, at)
    end = at + (words >> 4) * 4
    if flags != _ACK or end != int.from_bytes(packet[2:4]) or end > len(packet):
        return None
    options = packet[at + _TCP.size : end]
    return Acknowledgement(packet[:at], port, to_port, sequence, number, window, options)


def _checksum(content: bytes) -> int:
    """The Internet's checksum (RFC 1071) of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
