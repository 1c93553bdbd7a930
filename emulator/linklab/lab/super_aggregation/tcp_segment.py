"""Packs and parses TCP segments of a raw socket (RFC 9293 3.1), with timestamps (RFC 7323) and
selective acknowledgements (RFC 2018). Pure. IPv4 only, as the lab is."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from linklab.lab.network.translation import checksum

FIN, SYN, RST, ACK = 1, 2, 4, 16

_ALL_NUMBERS: Final = 1 << 32
_HEADER: Final = struct.Struct("!HHIIBBHHH")
_END, _FILLER, _MSS, _SCALE, _MAY_SACK, _SACK, _TIMES = 0, 1, 2, 3, 4, 5, 8
_TCP: Final = 6
_UNREACHABLE, _HOST = 3, 1

MOST_BLOCKS: Final = 3
"""The most blocks of a selective acknowledgement beside a timestamp (RFC 2018 3)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Holds the fields of one segment. `times` are the sender's clock, and the last clock of the
    other end that it has seen (RFC 7323 3.2)."""

    from_port: int
    to_port: int
    sequence: int
    acknowledged: int
    flags: int
    window: int
    times: tuple[int, int] | None = None
    payload: bytes = b""


def unwrapped(number: int, near: int) -> int:
    """Returns the number that equals `number` in 32 bits and is closest to `near`."""
    half = _ALL_NUMBERS // 2
    return near + (number - near + half) % _ALL_NUMBERS - half


def parsed(datagram: bytes) -> Segment:
    """Parses the segment in an IPv4 datagram. Raises ValueError if there is none."""
    try:
        begin = (datagram[0] & 0x0F) * 4
        (whole,) = struct.unpack_from("!H", datagram, 2)
        source, target, sequence, acknowledged, words, flags, window, _, _ = _HEADER.unpack_from(
            datagram, begin
        )
    except (IndexError, struct.error) as error:
        raise ValueError("too short for a segment") from error
    data = begin + (words >> 4) * 4
    if not begin + _HEADER.size <= data <= whole <= len(datagram):
        raise ValueError("a segment that ends before its header")
    times = _times(datagram[begin + _HEADER.size : data])
    payload = datagram[data:whole]
    return Segment(source, target, sequence, acknowledged, flags, window, times, payload)


def _times(options: bytes) -> tuple[int, int] | None:
    at = 0
    while at + 1 < len(options) and options[at] != _END:
        if options[at] == _FILLER:
            at += 1
            continue
        size = options[at + 1]
        if options[at] == _TIMES and size == 10 and at + size <= len(options):
            ours, theirs = struct.unpack_from("!II", options, at + 2)
            return ours, theirs
        at += max(size, 2)
    return None


def opening(segment_bytes: int, scale_bits: int) -> bytes:
    """Returns the options of a first segment: the largest segment size, the window's shift (RFC
    7323 2), and that selective acknowledgements are allowed."""
    filler = bytes((_FILLER,) * 3)
    return (
        struct.pack("!BBHBBBBB", _MSS, 4, segment_bytes, _MAY_SACK, 2, _SCALE, 3, scale_bits)
        + filler
    )


def selected(blocks: Iterable[tuple[int, int]]) -> bytes:
    """Returns the option with the received ranges beyond gaps, newest first. Only the first few
    fit."""
    known = list(blocks)[:MOST_BLOCKS]
    if not known:
        return b""
    numbers = b"".join(
        struct.pack("!II", begin % _ALL_NUMBERS, end % _ALL_NUMBERS) for begin, end in known
    )
    return bytes((_FILLER, _FILLER, _SACK, 2 + len(numbers))) + numbers


def packed(segment: Segment, source: bytes, target: bytes, options: bytes = b"") -> bytes:
    """Returns the segment with its checksum, to follow an IPv4 header with these addresses of 4
    bytes. `options` are whole words, after those of `times`. Numbers may exceed 32 bits."""
    if segment.times is not None:
        ours, theirs = segment.times
        clock = (ours % _ALL_NUMBERS, theirs % _ALL_NUMBERS)
        options = struct.pack("!BBBBII", _FILLER, _FILLER, _TIMES, 10, *clock) + options
    words = (_HEADER.size + len(options)) // 4
    header = bytearray(
        _HEADER.pack(
            segment.from_port,
            segment.to_port,
            segment.sequence % _ALL_NUMBERS,
            segment.acknowledged % _ALL_NUMBERS,
            words << 4,
            segment.flags,
            segment.window,
            0,
            0,
        )
    )
    size = words * 4 + len(segment.payload)
    pseudo = source + target + struct.pack("!BBH", 0, _TCP, size)
    struct.pack_into("!H", header, 16, checksum(pseudo + header + options + segment.payload))
    return bytes(header) + options + segment.payload


def unreachable(segment: Segment, source: bytes, target: bytes) -> bytes:
    """Returns an ICMP message that the segment's host is unreachable (RFC 792). It quotes the IPv4
    header and 8 bytes of the next segment that `segment` acknowledges, between these addresses."""
    address = bytearray(struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, _TCP, 0) + source + target)
    struct.pack_into("!H", address, 10, checksum(bytes(address)))
    number = segment.acknowledged % _ALL_NUMBERS
    about = bytes(address) + struct.pack("!HHI", segment.to_port, segment.from_port, number)
    head = bytearray(struct.pack("!BBHI", _UNREACHABLE, _HOST, 0, 0))
    struct.pack_into("!H", head, 2, checksum(bytes(head) + about))
    return bytes(head) + about
