"""Tests round trips against segments whose times are known."""

import struct

from linklab.core.round_trips import measured, with_data

MS = 1_000_000
PHONE, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
ACK, SYN, FIN = 0x10, 0x02, 0x01


def header(
    leaves: bool,
    first: int,
    length: int,
    acknowledged: int = 0,
    flags: int = ACK,
    port: int = 5000,
    option_bytes: int = 12,
) -> bytes:
    """The header of a segment between the phone's port and the server's 443."""
    source, target = (PHONE, SERVER) if leaves else (SERVER, PHONE)
    ports = (port, 443) if leaves else (443, port)
    total = 20 + 20 + option_bytes + length
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 64, 6, 0, source, target)
    offset = (20 + option_bytes) // 4 << 4
    numbers = first % (1 << 32), acknowledged % (1 << 32)
    return (
        ip
        + struct.pack("!HHIIBBHHH", *ports, *numbers, offset, flags, 0, 0, 0)
        + bytes(option_bytes)
    )


def sent(ms: float, first: int, length: int, **more: int) -> tuple[int, bool, bytes]:
    return round(ms * MS), True, header(True, first, length, **more)


def heard(ms: float, acknowledged: int, length: int = 0, **more: int) -> tuple[int, bool, bytes]:
    return round(ms * MS), False, header(False, 1, length, acknowledged, **more)


def lengths_ms(*packets: tuple[int, bool, bytes]) -> list[float]:
    return [one.length_ns / MS for one in measured(packets)]


def test_an_acknowledgement_is_timed_from_the_last_segment_that_it_covers() -> None:
    assert lengths_ms(sent(0, 1, 100), sent(1, 101, 100), heard(21, 201)) == [20]
    assert lengths_ms(sent(0, 1, 100), sent(1, 101, 100), heard(20, 101), heard(25, 201)) == [
        20,
        24,
    ]
    assert lengths_ms(sent(0, 1, 100), heard(20, 51)) == [], "a part is not all"


def test_data_comes_after_the_handshake_and_from_the_other_end() -> None:
    syn, fin = heard(20, 1, flags=SYN | ACK), heard(70, 300, flags=FIN | ACK)
    packets = [sent(0, 0, 0, flags=SYN), syn, sent(21, 1, 100), heard(41, 101)]
    assert list(with_data([*packets, heard(50, 101, 1400), heard(51, 101, 9), fin])) == [
        50 * MS,
        51 * MS,
    ]


def test_it_says_when_and_of_which_port() -> None:
    (one,) = measured([sent(3, 1, 100, port=7), heard(23, 101, port=7)])
    assert (one.t_ns, one.port, one.length_ns) == (23 * MS, 7, 20 * MS)


def test_the_handshake_and_the_end_are_segments() -> None:
    begun = sent(0, 0, 0, flags=SYN), heard(340, 1, flags=SYN | ACK), sent(340, 1, 0)
    assert lengths_ms(*begun) == [340]
    assert lengths_ms(*begun, sent(400, 1, 0, flags=FIN | ACK), heard(460, 2)) == [340, 60]


def test_an_answer_acknowledges_and_a_mere_acknowledgement_is_no_segment() -> None:
    assert lengths_ms(sent(0, 1, 100), heard(50, 101, length=1000)) == [50]
    assert lengths_ms(sent(0, 1, 0), heard(50, 1)) == []
    assert lengths_ms(sent(0, 1, 100), heard(20, 101), heard(30, 101)) == [20], "and not twice"


def test_what_was_sent_twice_does_not_count() -> None:
    assert lengths_ms(sent(0, 1, 100), sent(200, 1, 100), heard(220, 101)) == []
    # Two segments again as one, and a new one behind them.
    again = sent(0, 1, 100), sent(1, 101, 100), sent(200, 1, 200)
    assert lengths_ms(*again, heard(220, 201)) == []
    behind = *again, sent(201, 201, 50)
    assert lengths_ms(*behind, heard(220, 201), heard(221, 251)) == [20]
    assert lengths_ms(*behind, heard(221, 251)) == [], "it waited for the repeated ones"
    # A segment with old and new bytes.
    assert lengths_ms(sent(0, 1, 100), sent(200, 51, 100), heard(220, 151)) == []


def test_a_repeated_segment_spoils_no_other() -> None:
    lost = sent(0, 1, 100), sent(1, 101, 100), sent(5, 1, 100)
    assert lengths_ms(*lost, heard(20, 101), heard(22, 201)) == [21]


def test_sequence_numbers_wrap() -> None:
    last = (1 << 32) - 50
    assert lengths_ms(sent(0, last, 100), heard(20, 50), sent(30, 50, 10), heard(55, 60)) == [
        20,
        25,
    ]
    assert lengths_ms(sent(0, last, 100), sent(90, last, 100), heard(99, 50)) == []


def test_connections_are_told_apart() -> None:
    packets = (
        sent(0, 1, 100, port=5),
        sent(1, 1, 100, port=6),
        heard(30, 101, port=6),
        heard(60, 101, port=5),
    )
    assert [(one.port, one.length_ns / MS) for one in measured(packets)] == [(6, 29), (5, 60)]


def test_ipv6_counts_too() -> None:
    def as_ipv6(packet: tuple[int, bool, bytes]) -> tuple[int, bool, bytes]:
        t_ns, leaves, old = packet
        payload_bytes = int.from_bytes(old[2:4]) - 20
        addresses = old[12:16] * 4 + old[16:20] * 4
        ip = struct.pack("!IHBB", 6 << 28, payload_bytes, 6, 64) + addresses
        return t_ns, leaves, ip + old[20:]

    begun = sent(0, 1, 100), sent(1, 101, 100), sent(9, 101, 100), heard(21, 101), heard(30, 201)
    assert lengths_ms(*map(as_ipv6, begun)) == lengths_ms(*begun) == [21]
    t_ns, leaves, whole = as_ipv6(sent(0, 1, 100))
    cut = (t_ns, leaves, whole[:53])
    udp = (t_ns, leaves, whole[:6] + bytes([17]) + whole[7:])
    assert lengths_ms(cut, udp, as_ipv6(heard(20, 101))) == []


def test_other_packets_and_cut_ones_do_not_count() -> None:
    whole = header(True, 1, 100)
    udp = whole[:9] + bytes([17]) + whole[10:]
    strange = [b"", whole[:19], whole[:33], udp, b"\x50" + whole[1:]]
    packets = [(n, True, one) for n, one in enumerate(strange)]
    assert lengths_ms(*packets, heard(20, 101)) == []
