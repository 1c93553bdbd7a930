import socket
import struct
from random import Random

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.lab.network.translation import MOST_FLOWS, TCP, UDP, Translator

CLIENT, NAT, SERVER = (socket.inet_aton(one) for one in ("10.1.0.2", "10.1.2.3", "10.0.0.1"))
SECOND_NS = 10**9
SYN, ACK = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK


def translator() -> Translator:
    return Translator(NAT, {UDP: 30.0, TCP: 100.0}, Random(1))


def packet(
    source: bytes, target: bytes, sport: int, dport: int, content: bytes = b"abc", flags: int = -1
) -> bytes:
    """Returns a packet of UDP, or of TCP if it has flags, with all checksums."""
    if flags < 0:
        inner = dpkt.udp.UDP(sport=sport, dport=dport, data=content, ulen=8 + len(content))
    else:
        inner = dpkt.tcp.TCP(sport=sport, dport=dport, flags=flags, data=content)
    protocol = UDP if flags < 0 else TCP
    return bytes(dpkt.ip.IP(src=source, dst=target, p=protocol, data=inner, len=20 + len(inner)))


def is_right(made: bytes) -> bool:
    """Whether all checksums are those that dpkt computes."""
    read = dpkt.ip.IP(made)
    read.sum, read.data.sum = 0, 0
    return bytes(read) == made


def ports(made: bytes) -> tuple[bytes, int, bytes, int]:
    read = dpkt.ip.IP(made)
    return read.src, read.data.sport, read.dst, read.data.dport


@given(st.integers(1, 65535), st.integers(1, 65535), st.binary(max_size=50), st.booleans())
def test_what_goes_out_comes_back(sport: int, dport: int, content: bytes, is_tcp: bool) -> None:
    nat = translator()
    flags = SYN if is_tcp else -1
    out = nat.translated(packet(CLIENT, SERVER, sport, dport, content, flags), 0)
    assert out is not None
    assert is_right(out)
    source, port, *there = ports(out)
    assert (source, there) == (NAT, [SERVER, dport])
    answer = packet(SERVER, NAT, dport, port, content, SYN | ACK if is_tcp else -1)
    back = nat.translated(answer, 1)
    assert back is not None
    assert is_right(back)
    assert ports(back) == (SERVER, dport, CLIENT, sport)


def test_an_idle_udp_flow_gets_another_port() -> None:
    nat = translator()
    asked = packet(CLIENT, SERVER, 5000, 443)

    def port_at(now_s: float) -> int:
        out = nat.translated(asked, round(now_s * SECOND_NS))
        assert out is not None
        return ports(out)[1]

    first = port_at(0)
    assert port_at(29.9) == first
    assert nat.translated(packet(SERVER, NAT, 443, first), 59 * SECOND_NS) is not None
    assert port_at(88.9) == first  # What came back has kept it.
    assert nat.translated(packet(SERVER, NAT, 443, first), 119 * SECOND_NS) is None
    assert port_at(120) != first


def test_a_forgotten_connection_is_dead() -> None:
    nat = translator()
    first = nat.translated(packet(CLIENT, SERVER, 5000, 443, b"", SYN), 0)
    assert first is not None
    data = packet(CLIENT, SERVER, 5000, 443, b"x", ACK)
    assert nat.translated(data, 99 * SECOND_NS) is not None
    assert nat.translated(data, 199 * SECOND_NS) is None
    assert nat.translated(data, 200 * SECOND_NS) is None
    assert nat.translated(packet(CLIENT, SERVER, 5000, 443, b"", SYN), 201 * SECOND_NS) is not None


TIMES_S = st.integers(1, 5)


@given(TIMES_S, st.lists(st.tuples(TIMES_S, st.none() | TIMES_S), max_size=9))
def test_a_forgotten_flow_does_not_come_back(
    idle_s: int, steps: list[tuple[int, int | None]]
) -> None:
    """Random waits, each before a packet of the server or a change of the idle time."""
    nat, now_s, last_s, alive = translator(), 0, 0, True
    nat.set_idle({UDP: idle_s, TCP: 9.0}, 0)
    out = nat.translated(packet(CLIENT, SERVER, 5000, 443), 0)
    assert out is not None
    for wait_s, change_s in steps:
        now_s += wait_s
        alive = alive and now_s - last_s < idle_s
        if change_s is not None:
            idle_s = change_s
            nat.set_idle({UDP: idle_s, TCP: 9.0}, now_s * SECOND_NS)
            continue
        back = nat.translated(packet(SERVER, NAT, 443, ports(out)[1]), now_s * SECOND_NS)
        assert (back is not None) == alive
        last_s = now_s if alive else last_s


def test_flows_are_bounded_by_those_that_are_not_forgotten() -> None:
    nat, asked = translator(), bytearray(packet(CLIENT, SERVER, 0, 443))
    for number in range(2 * MOST_FLOWS):
        asked[12:16] = number.to_bytes(4)
        is_late = number // MOST_FLOWS
        assert nat.translated(bytes(asked), 30 * is_late * SECOND_NS) is not None
    assert nat.translated(packet(CLIENT, SERVER, 5000, 443), 30 * SECOND_NS) is None
    assert nat.translated(packet(CLIENT, SERVER, 5000, 443), 60 * SECOND_NS) is not None


def test_only_the_asked_server_may_answer() -> None:
    nat = translator()
    out = nat.translated(packet(CLIENT, SERVER, 5000, 443), 0)
    assert out is not None
    port = ports(out)[1]
    assert nat.translated(packet(SERVER, NAT, 444, port), 0) is None
    assert nat.translated(packet(CLIENT, NAT, 443, port), 0) is None
    assert nat.translated(packet(SERVER, NAT, 443, port % 65535 + 1), 0) is None
    assert nat.translated(packet(SERVER, NAT, 443, port, flags=ACK), 0) is None


def test_flows_have_ports_of_their_own() -> None:
    nat = translator()
    found = set()
    for sport in range(1, 1000):
        out = nat.translated(packet(CLIENT, SERVER, sport, 443), 0)
        assert out is not None
        found.add(ports(out)[1])
    assert len(found) == 999
    assert min(found) >= 1024


def test_the_same_seed_draws_the_same_ports() -> None:
    asked = packet(CLIENT, SERVER, 5000, 443)
    assert translator().translated(asked, 0) == translator().translated(asked, 5)


def test_an_icmp_error_reaches_the_client_s_socket() -> None:
    nat = translator()
    out = nat.translated(packet(CLIENT, SERVER, 5000, 443), 0)
    assert out is not None
    error = dpkt.icmp.ICMP.Unreach(mtu=1200, data=out[:28])
    icmp = dpkt.icmp.ICMP(type=3, code=4, data=error)
    told = bytes(dpkt.ip.IP(src=SERVER, dst=NAT, p=1, data=icmp, len=20 + len(icmp)))
    back = nat.translated(told, 1)
    assert back is not None
    assert dpkt.ip.IP(back).dst == CLIENT
    assert dpkt.in_cksum(back[20:]) == 0
    inner = back[28:]
    assert (inner[12:16], struct.unpack_from("!H", inner, 20)[0]) == (CLIENT, 5000)
    assert dpkt.in_cksum(inner[:20]) == 0
    assert nat.translated(told, 31 * SECOND_NS) is None


@pytest.mark.parametrize("length", [0, 1, 19, 20, 27])
def test_what_is_cut_off_is_dropped(length: int) -> None:
    assert translator().translated(packet(CLIENT, SERVER, 1, 2)[:length], 0) is None


@given(st.binary(max_size=100))
def test_no_packet_ends_the_nat(content: bytes) -> None:
    nat = translator()
    nat.translated(content, 0)
    for target in (NAT, SERVER):
        nat.translated(b"\x45" + content[:15].ljust(15, b"\0") + target + content, 0)
