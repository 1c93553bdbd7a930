import io
import socket
import struct
from fractions import Fraction

import pytest

from linklab.importers import capture, captures_for_test
from linklab.importers.format import Options
from linklab.importers.registry import format_of
from linklab.traces.trace import TraceError, TraceFile

CLIENT, SERVER, OTHER = "10.0.0.2", "192.0.2.7", "192.0.2.9"
BEGIN_NS = 1_700_000_000 * 10**9 + 123_456_789


def ip(source: str, destination: str, size: int, *, syn: bool = False) -> bytes:
    """An IP packet of `size` bytes with a header of TCP."""
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    head = struct.pack(">BBHHHBBH8s", 0x45, 0, size, 1, 0, 64, 6, 0, ends)
    tcp = struct.pack(">HHIIBBHHH", 443, 5000, 1, 1, 0x50, 0x02 if syn else 0x10, 99, 0, 0)
    return (head + tcp).ljust(size, b"x")


def ethernet(packet: bytes) -> bytes:
    return b"\2" * 12 + b"\x08\0" + packet


Timed = tuple[int, bytes, int]
"""Time in ns, captured bytes, number of the device."""


def pcap(packets: list[Timed], link_type: int = 1, *, order: str = "<") -> bytes:
    timed = ((Fraction(t_ns, 10**9), content) for t_ns, content, _ in packets)
    return captures_for_test.pcap_content(timed, link_type, order)


def pcapng(packets: list[Timed], names: tuple[str, ...] = ("wlan0",), link_type: int = 1) -> bytes:
    timed = ((Fraction(t_ns, 10**9), number, content) for t_ns, content, number in packets)
    return captures_for_test.pcapng_content([(one, link_type, 9, 0) for one in names], timed)


def download(rate_mbit: float = 12.112, seconds: float = 2.0) -> list[Timed]:
    """Full frames at a steady rate, each second one acknowledged, after a handshake."""
    packets = [(BEGIN_NS, ethernet(ip(CLIENT, SERVER, 60, syn=True)), 0)]
    gap_ns = round(1514 * 8 / rate_mbit * 1e3)
    for number in range(round(seconds * 1e9 / gap_ns)):
        t_ns = BEGIN_NS + number * gap_ns
        packets.append((t_ns, ethernet(ip(SERVER, CLIENT, 1500)), 0))
        if number % 2:
            packets.append((t_ns + 100, ethernet(ip(CLIENT, SERVER, 52)), 0))
    return packets


def recording(content: bytes, **options: object) -> TraceFile:
    read = capture.FORMAT.read
    return read(io.BytesIO(content), "x.pcap", Options(**options), False)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_rates_are_those_of_whole_frames(make: object) -> None:
    assert callable(make)
    content = make(download())
    assert format_of(content[:9000], "x").name == "capture"
    opened = recording(content, bin_s=0.5)
    trace = list(opened.samples)
    assert [one.length_ns for one in trace[:3]] == [500_000_000] * 3
    for one in trace:
        assert one.down_bps == pytest.approx(12_112_000, rel=0.003)
        assert one.up_bps == pytest.approx(12_112_000 / 2 * 66 / 1514, rel=0.01)
    assert opened.notes == [
        "the rates are what the link carried: its capacity only while it was used up"
    ]


def test_nanoseconds_place_packets_in_bins() -> None:
    """A packet 1 ns before a bin's end is in it, one at its end in the next."""
    times = [0, 999_999, 1_000_000, 2_999_999, 3_000_000, 3_999_999]
    packets = [(BEGIN_NS + t, ethernet(ip(SERVER, CLIENT, 1500)), 0) for t in times]
    packets.insert(0, (BEGIN_NS, ethernet(ip(CLIENT, SERVER, 60, syn=True)), 0))
    for content in (pcap(packets), pcap(packets, order=">"), pcapng(packets)):
        trace = list(recording(content, bin_s=0.001).samples)
        assert [round((one.down_bps or 0) * one.length_ns / 8e9 / 1514) for one in trace] == [
            2,
            1,
            1,
            2,
        ]


def test_packets_that_the_kernel_joined_count_as_their_frames() -> None:
    one = [(BEGIN_NS, ethernet(ip(SERVER, CLIENT, 52 + 10 * 1448)), 0)]
    ten = [(BEGIN_NS + 1, ethernet(ip(SERVER, CLIENT, 1500)), 0)] * 10
    ends = [(BEGIN_NS + 10**9, ethernet(ip(CLIENT, SERVER, 60, syn=True)), 0)]
    (joined,), (apart,) = (
        list(recording(pcap(p + ends), bin_s=1.0).samples)[:1] for p in (one, ten)
    )
    assert joined.down_bps == apart.down_bps


def test_the_client_is_found_by_handshake_option_or_many_packets() -> None:
    packets = download(seconds=0.5)
    expected = list(recording(pcap(packets)).samples)
    turned = list(recording(pcap(packets), only={"client": SERVER}).samples)
    assert [(one.up_bps, one.down_bps) for one in turned] == [
        (one.down_bps, one.up_bps) for one in expected
    ]
    others = [
        (t_ns, content.replace(socket.inet_aton(SERVER), socket.inet_aton(OTHER)), number)
        for t_ns, content, number in packets[1::3]
    ]
    mixed = sorted([*packets[1:], *others])
    found = list(recording(pcap(mixed)).samples)
    assert all((one.down_bps or 0) > (one.up_bps or 0) for one in found)


def test_linux_cooked_captures_tell_the_way_themselves() -> None:
    def cooked(packet: bytes) -> bytes:
        way = 4 if packet[12:16] == socket.inet_aton(CLIENT) else 0
        return struct.pack(">HHH8sH", way, 1, 6, b"", 0x0800) + packet

    plain = download(seconds=0.5)[1:]
    packets = [(t_ns, cooked(content[14:]), number) for t_ns, content, number in plain]
    opened = recording(pcap(packets, 113))
    expected = list(recording(pcap(plain), only={"client": CLIENT}).samples)
    assert list(opened.samples) == expected
    assert "captured on 'any': a packet that passed two devices counts twice" in opened.notes


def test_a_cut_file_a_silence_and_other_packets_are_noted() -> None:
    packets = download(seconds=0.4)
    later = [(t_ns + 60 * 10**9, content, number) for t_ns, content, number in packets[1:]]
    arp = (BEGIN_NS, b"\2" * 12 + b"\x08\x06" + bytes(46), 0)
    content = pcap([arp, *packets, *later])
    opened = recording(content[:-40])
    trace = list(opened.samples)
    assert max(one.length_ns for one in trace) > 59 * 10**9
    assert opened.notes[1:] == [
        "1 packets are not of IP or not of the client: left out",
        "the file is cut off: it is read up to its last whole packet",
    ]


TWO = [(t_ns, content, number % 2) for number, (t_ns, content, _) in enumerate(download())]


@pytest.mark.parametrize(
    ("content", "only", "message"),
    [
        (pcapng(TWO, ("wlan0", "rmnet0")), None, "x.pcap: packets of 'wlan0' and 'rmnet0' are in"),
        (pcap(download()[1:]), None, "x.pcap: no handshake tells which end is the client;"),
        (pcap(download()), {"end": "x"}, "x.pcap: 'end' chooses nothing; allowed: client, device"),
        (pcap(download()), {"client": "me"}, "x.pcap: --only client=me: allowed is an IP address"),
        (pcap(download()[:1]), None, "x.pcap: there are no packets that last for some time;"),
        (pcap(download(), 105), None, "x.pcap: link type 105 is not read; allowed: Ethernet"),
        (
            pcap([one for one in download() if one[1][26:30] == socket.inet_aton(CLIENT)]),
            None,
            "x.pcap: only packets of the uplink are captured; allowed: both directions",
        ),
        (pcap(list(reversed(download()))), {"client": CLIENT}, "x.pcap: a packet is 1 s earlier"),
        (pcap(download())[:-9] + b"y" * 99, None, "x.pcap: byte "),
    ],
)
def test_what_is_not_clear_is_refused(
    content: bytes, only: dict[str, str] | None, message: str
) -> None:
    with pytest.raises(TraceError) as caught:
        list(recording(content, only=only).samples)
    assert str(caught.value).startswith(message)
    assert "allowed" in str(caught.value) or "needed" in str(caught.value)


def test_a_device_may_be_chosen() -> None:
    both = [*TWO, *((t_ns + 50, content, 1) for t_ns, content, number in TWO if not number)]
    opened = recording(
        pcapng(sorted(both), ("wlan0", "rmnet0")), only={"device": "wlan0"}, bin_s=1.0
    )
    rates = [one.down_bps for one in opened.samples]
    assert 0 < max(rate or 0 for rate in rates) < 12_112_000
