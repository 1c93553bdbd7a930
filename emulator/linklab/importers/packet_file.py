"""Reads pcap and pcapng files, packet by packet: time, device, content.

pcap: draft-ietf-opsawg-pcap. pcapng: draft-ietf-opsawg-pcapng. dpkt cannot do it: it reads all
packets of a pcapng file with the link type and time unit of the first device.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from linklab.core.errors import LinklabError
from linklab.traces.trace import NS_PER_S

_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
"""Byte order and ticks per second, by a file's first bytes."""

_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}

MAGIC: Final = (*_PCAP, _SECTION)
"""The first bytes of pcap and pcapng files."""

_MAX_BYTES: Final = 1 << 24
"""The limit for a packet or block. libpcap's packets have up to 256 KiB."""

_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_NAME, _RESOLUTION, _OFFSET = 2, 9, 14


class CaptureError(LinklabError, ValueError):
    """The file is no capture, or is damaged. The message says where, why and what is allowed."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet, as far as it was captured.

    Attributes:
        t_ns: time since 1970 in nanoseconds.
        device: "" if the file has only one device; starts with a digit if the device has no name.
        link_type: see tcpdump.org/linktypes.html.
        length: length of the packet before truncation.
    """

    t_ns: int
    device: str
    link_type: int
    content: bytes
    length: int

    @property
    def t_s(self) -> float:
        """The time in seconds since 1970, which floats tell to about 0.2 µs."""
        return self.t_ns / NS_PER_S


@dataclass(frozen=True, slots=True)
class _Interface:
    name: str
    link_type: int
    ticks: int = 10**6
    offset_s: int = 0


class PacketFile:
    """Iterates over the packets of a file, in its order. Iterating raises CaptureError.

    Afterwards `is_truncated` tells whether the file ends within a packet, such as when tcpdump was
    killed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self.is_truncated = False

    def __iter__(self) -> Iterator[Packet]:
        begin = self._file.read(4)
        self._at = len(begin)
        if begin in _PCAP:
            packets = self._pcap(begin)
        elif begin == _SECTION:
            packets = self._pcapng()
        else:
            raise self._error("this begins no capture", "files of pcap and pcapng")
        try:
            yield from packets
        except EOFError:
            self.is_truncated = True

    def _read(self, size: int) -> bytes:
        """Reads `size` bytes. Raises EOFError if the file ends before."""
        content = self._file.read(size)
        self._at += len(content)
        if len(content) < size:
            raise EOFError
        return content

    def _next(self, size: int) -> bytes:
        """Reads `size` bytes, or none at the end of the file. Raises EOFError in between."""
        first = self._file.read(1)
        self._at += len(first)
        return first + self._read(size - 1) if first else b""

    def _error(self, what: str, allowed: str = "a capture that is not damaged") -> CaptureError:
        return CaptureError(f"byte {self._at}: {what}; allowed: {allowed}")

    def _pcap(self, magic: bytes) -> Iterator[Packet]:
        order, ticks = _PCAP[magic]
        head = self._file.read(20)
        self._at += len(head)
        if len(head) < 20:
            raise self._error("the file ends in its header", "a whole capture")
        link_type = struct.unpack(f"{order}16xI", head)[0] & 0xFFFF
        record = struct.Struct(f"{order}IIII")
        while head := self._next(record.size):
            seconds, parts, kept, length = record.unpack(head)
            if head[:4] == magic:
                raise self._error("a second capture begins", "one in a file (mergecap joins them)")
            if parts > ticks or kept > _MAX_BYTES:
                raise self._error("this is no packet")
            t_ns = (seconds * ticks + parts) * NS_PER_S // ticks
            yield Packet(t_ns, "", link_type, self._read(kept), length)

    def _pcapng(self) -> Iterator[Packet]:
        order, section = "", 0
        interfaces: list[_Interface] = []
        kind_bytes = _SECTION
        while kind_bytes:
            is_section = kind_bytes == _SECTION
            head = self._read(8 if is_section else 4)
            if is_section:
                section, interfaces, order = section + 1, [], _ORDERS.get(head[4:], "")
                if not order:
                    raise self._error("this begins no section")
            kind, size = struct.unpack(f"{order}II", kind_bytes + head[:4])
            if size % 4 or not 12 <= size <= _MAX_BYTES:
                raise self._error("this is no block")
            body = self._read(size - 4 - len(head))
            if struct.unpack(f"{order}I", body[-4:])[0] != size:
                raise self._error("this block has two lengths")
            if kind == _INTERFACE:
                number = f"{section}.{len(interfaces)}"
                interfaces.append(self._interface(order, body[:-4], number))
            elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                yield self._packet(order, kind, body[:-4], interfaces)
            kind_bytes = self._next(4)

    def _interface(self, order: str, body: bytes, number: str) -> _Interface:
        try:
            (link_type,) = struct.unpack_from(f"{order}H", body)
            options = _options(order, body[8:])
            resolution = options.get(_RESOLUTION, b"\x06")[0]
            exponent = resolution & 0x7F
            (offset_s,) = struct.unpack(f"{order}q", options.get(_OFFSET, bytes(8)))
        except (struct.error, IndexError) as error:
            raise self._error("a device is not described") from error
        name = options.get(_NAME, b"").decode("utf-8", "replace").rstrip("\0")
        ticks = 2**exponent if resolution & 0x80 else 10**exponent
        return _Interface(name or number, link_type, ticks, offset_s)

    def _packet(self, order: str, kind: int, body: bytes, interfaces: list[_Interface]) -> Packet:
        if kind == _SIMPLE_PACKET:
            raise self._error("a packet has no time", "packets with times")
        form = f"{order}{'I' if kind == _PACKET else 'Hxx'}IIII"
        try:
            number, high, low, kept, length = struct.unpack_from(form, body)
            interface = interfaces[number]
        except (struct.error, IndexError) as error:
            raise self._error("a packet is of no device") from error
        content = body[20 : 20 + kept]
        if len(content) < kept:
            raise self._error("this is no packet")
        ticks = (high << 32 | low) + interface.offset_s * interface.ticks
        t_ns = ticks * NS_PER_S // interface.ticks
        return Packet(t_ns, interface.name, interface.link_type, content, length)


def _options(order: str, content: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(content):
        code, size = struct.unpack_from(f"{order}HH", content, at)
        if code == 0:
            break
        found.setdefault(code, content[at + 4 : at + 4 + size])
        at += 4 + size + -size % 4
    return found
