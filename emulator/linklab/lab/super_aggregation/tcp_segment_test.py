"""Tests tcp_segment.py."""

import socket
import struct

import pytest

from linklab.lab.super_aggregation import tcp_segment
from linklab.lab.super_aggregation.tcp_segment import ACK, SYN, Segment, packed, parsed, unwrapped

HERE, THERE = socket.inet_aton("10.1.0.2"), socket.inet_aton("10.0.0.1")


def datagram(segment: bytes) -> bytes:
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0) + HERE + THERE
    return header + segment


def summed(content: bytes) -> int:
    """The sum of the words, carries added: all ones over a segment whose checksum is right."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    return total % 0xFFFF


@pytest.mark.parametrize("payload", [b"", b"odd", b"even"])
def test_a_segment_is_read_as_it_was_written(payload: bytes) -> None:
    segment = Segment(40_000, 80, 7, 9, ACK, 512, (11, 12), payload)
    blocks = tcp_segment.selected([(100, 200), (300, 400)])
    written = packed(segment, HERE, THERE, blocks)
    assert parsed(datagram(written)) == segment
    # 20 bytes of header, 12 of timestamps, 4 and twice 8 of blocks.
    assert len(written) == 52 + len(payload)
    pseudo = HERE + THERE + struct.pack("!BBH", 0, 6, len(written))
    assert summed(pseudo + written + bytes(len(written) % 2)) == 0


def test_that_a_host_is_unreachable_is_said_of_what_is_acknowledged_next() -> None:
    told = tcp_segment.unreachable(Segment(40_000, 443, 7, 2**32 + 9, ACK, 512), THERE, HERE)
    assert told[:2] == bytes((3, 1))  # Destination and host unreachable (RFC 792).
    assert summed(told) == 0
    address, about = told[8:28], told[28:]
    assert summed(address) == 0
    assert (address[9], address[12:16], address[16:20]) == (6, THERE, HERE)
    assert struct.unpack("!HHI", about) == (443, 40_000, 9)


def test_what_ethernet_adds_behind_a_datagram_is_not_payload() -> None:
    written = packed(Segment(1, 2, 3, 4, ACK, 5), HERE, THERE)
    assert parsed(datagram(written) + bytes(6)).payload == b""


def test_the_options_of_a_first_segment() -> None:
    first = packed(Segment(1, 80, 5, 0, SYN, 9, (3, 0)), HERE, THERE, tcp_segment.opening(1460, 9))
    assert first[12] >> 4 == len(first) // 4
    # MSS (RFC 9293 3.2), selective acknowledgements permitted, window scale, fillers.
    assert first[32:] == bytes.fromhex("020405b4 0402 030309 010101")
    assert parsed(datagram(first)).times == (3, 0)


def test_three_blocks_find_room_the_newest_first() -> None:
    option = tcp_segment.selected([(2**32 - 4, 2**32 + 4), (5, 6), (7, 8), (9, 10)])
    assert option[:4] == bytes((1, 1, 5, 26))
    assert struct.unpack("!6I", option[4:]) == (2**32 - 4, 4, 5, 6, 7, 8)
    assert tcp_segment.selected([]) == b""


def test_numbers_begin_anew_after_32_bits() -> None:
    top = 1 << 32
    assert unwrapped(5, top - 10) == top + 5
    assert unwrapped(top - 10, top + 5) == top - 10
    assert unwrapped(5, 3 * top + 1) == 3 * top + 5
    wrapped = packed(Segment(1, 2, top + 5, 2 * top + 6, ACK, 7), HERE, THERE)
    read = parsed(datagram(wrapped))
    assert (read.sequence, read.acknowledged) == (5, 6)


@pytest.mark.parametrize("cut", [0, 10, 30])
def test_what_is_cut_off_is_no_segment(cut: int) -> None:
    whole = datagram(packed(Segment(1, 2, 3, 4, ACK, 5, (1, 1)), HERE, THERE))
    with pytest.raises(ValueError, match="segment"):
        parsed(whole[:cut])
