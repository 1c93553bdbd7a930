from __future__ import annotations

from dataclasses import replace

import pytest

from linklab.core import tcp_packet

# From a capture of the lab, in which the kernel fills in checksums.
IP = bytes.fromhex("45000034eb31400040063b8f0a0100020a000001")
TCP = bytes.fromhex("87e801bb9d3659d5dd4e90cd801020d3")
CHECKSUM = 0x266C
OPTIONS = bytes.fromhex("0101080ae802f490aef9a121")
PACKET = IP + TCP + CHECKSUM.to_bytes(2) + b"\0\0" + OPTIONS


def test_an_acknowledgement_is_read_and_written_as_it_was() -> None:
    read = tcp_packet.read(PACKET)
    assert read is not None
    assert (read.port, read.to_port, read.server) == (0x87E8, 443, "10.0.0.1")
    assert (read.number, read.window) == (0xDD4E90CD, 0x20D3)
    assert read.options == OPTIONS
    assert read.packet() == PACKET


def test_a_checksum_that_a_device_left_out_is_filled_in() -> None:
    read = tcp_packet.read(PACKET.replace(CHECKSUM.to_bytes(2), b"\0\0"))
    assert read is not None
    assert read.packet() == PACKET


def test_frozen_says_less_and_closes_the_window() -> None:
    read = tcp_packet.read(PACKET)
    assert read is not None
    frozen = read.frozen(1448)
    assert (frozen.number, frozen.window) == (read.number - 1448, 0)
    assert read.after(frozen) == 1448
    assert read.but(1448) == replace(frozen, window=read.window)
    again = tcp_packet.read(frozen.packet())
    assert again == frozen


def test_numbers_begin_anew_after_the_largest() -> None:
    read = tcp_packet.read(PACKET)
    assert read is not None
    early = replace(read, number=100)
    frozen = early.frozen(200)
    assert frozen.number == 2**32 - 100
    assert early.after(frozen) == 200


@pytest.mark.parametrize(
    "other",
    [
        b"",
        PACKET[:39],
        PACKET[:51],  # Its options are cut off.
        b"\x60" + PACKET[1:],  # IPv6.
        PACKET[:9] + b"\x11" + PACKET[10:],  # UDP.
        PACKET[:3] + b"\x35" + PACKET[4:] + b"x",  # A byte of payload.
        PACKET[:33] + b"\x12" + PACKET[34:],  # SYN, too.
        PACKET[:33] + b"\x11" + PACKET[34:],  # FIN, too.
    ],
)
def test_what_is_no_pure_acknowledgement(other: bytes) -> None:
    assert tcp_packet.read(other) is None
