"""Tests captures of links with known rates, as other tools make them, or damaged. The rate is
right, or the file is refused with the reason."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from linklab.conftest import TEST_ALL
from linklab.field import capture, capture_test
from linklab.field.capture_test import RATE_BPS, rate_bps, read
from linklab.field.recording import RecordingError
from linklab.importers import captures_for_test as made_captures
from linklab.importers.captures_for_test import (
    CLIENT,
    OPAQUE,
    READABLE,
    Timed,
    ethernet,
    is_up,
    pcap,
    pcapng,
    sll,
    sll_2,
)

OTHER = b"\x0a\x00\x07\x07"
NS, US, FINE = 9, 6, 0x80 | 30
"""if_tsresol: 10^-9, 10^-6, 2^-30."""


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> list[Timed]:
    """A download at RATE_BPS for 2 s, packets of IP."""
    file = tmp_path_factory.mktemp("capture") / "wlan0.pcap"
    return made_captures.ip_packets(capture_test.download(file, length_s=2.0))


def other(packets: Sequence[Timed], slower: float = 2.0) -> list[Timed]:
    """The same by another link at a part of the rate, of another client's address."""
    begin_s = packets[0][0]
    return [
        (begin_s + (t_s - begin_s) * slower + 1e-5, one.replace(CLIENT, OTHER, 1))
        for t_s, one in packets
    ]


def right(found_bps: float, rate_bps: float = RATE_BPS) -> bool:
    return found_bps == pytest.approx(rate_bps, rel=0.03)


def refused(file: Path) -> str:
    with pytest.raises(RecordingError) as caught:
        capture.read([file])
    said = str(caught.value)
    assert said.startswith(f"{file}: ")
    assert "allowed: " in said or "needed: " in said
    return said.removeprefix(f"{file}: ")


@pytest.mark.parametrize("delay_s", [0.0, 1e-4, 0.3])
def test_packets_that_are_there_twice_count_once(
    tmp_path: Path, packets: list[Timed], delay_s: float
) -> None:
    """Also where a router's changes tell them apart: the hops left, and the header's checksum."""
    routed = [(t_s + delay_s, one[:8] + b"\x20\x06\0\0" + one[12:]) for t_s, one in packets]
    both = sorted([*packets, *routed], key=lambda timed: timed[0])
    found = read(pcap(tmp_path / "a.pcap", ((t_s, ethernet(one)) for t_s, one in both)))
    once = read(pcap(tmp_path / "b.pcap", ((t_s, ethernet(one)) for t_s, one in packets)))
    assert found.histories[0].carried_bytes == once.histories[0].carried_bytes
    assert right(rate_bps(found, "a"))
    (note,) = found.notes
    assert note.startswith("a.pcap: ")
    assert note.endswith(" packets were in it twice: they count once.")


def test_data_that_is_there_twice_otherwise_is_refused(
    tmp_path: Path, packets: list[Timed]
) -> None:
    """Such as by the kernel's joining of packets: these differ in their numbers."""

    def numbered(one: bytes, number: int) -> bytes:
        return one[:4] + number.to_bytes(2, "big") + one[6:44] + bytes(8) + one[52:]

    both = [
        (t_s, ethernet(numbered(one, (index * 2 + more) % 65535 + 1)))
        for index, (t_s, one) in enumerate(packets)
        for more in (0, 1)
    ]
    assert "% of the data came again" in refused(pcap(tmp_path / "a.pcap", both))


def test_devices_of_linux_are_links_of_their_own(tmp_path: Path, packets: list[Timed]) -> None:
    """As `tcpdump -i any` writes them."""
    mixed = sorted(
        [
            *((t_s, sll_2(one, 3)) for t_s, one in packets),
            *((t_s, sll_2(one, 12, out=one[12:16] == OTHER)) for t_s, one in other(packets)),
        ]
    )
    found = read(pcap(tmp_path / "any.pcap", mixed, 276))
    assert [history.link for history in found.histories] == ["dev3", "dev12"]
    assert right(rate_bps(found, "dev3"))
    assert right(rate_bps(found, "dev12"), RATE_BPS / 2)
    assert found.notes == ("any.pcap: its devices are read as links of their own: dev3, dev12.",)


@pytest.mark.parametrize(
    ("order", "resolutions"), [("<", (NS, US)), (">", (US, FINE)), ("<", (FINE, NS))]
)
def test_devices_of_pcapng_have_names_link_types_and_clocks_of_their_own(
    tmp_path: Path, packets: list[Timed], order: str, resolutions: tuple[int, int]
) -> None:
    devices = [("wlan0", 1, resolutions[0], 0), ("rmnet0", 101, resolutions[1], 100)]
    mixed = sorted(
        [
            *((t_s, 0, ethernet(one)) for t_s, one in packets),
            *((t_s, 1, one) for t_s, one in other(packets)),
        ]
    )
    found = read(pcapng(tmp_path / "a.pcapng", devices, mixed, order))
    assert [history.link for history in found.histories] == ["wlan0", "rmnet0"]
    assert right(rate_bps(found, "wlan0"))
    assert right(rate_bps(found, "rmnet0"), RATE_BPS / 2)


def test_a_packet_of_a_bridge_is_the_device_s_below_it(
    tmp_path: Path, packets: list[Timed]
) -> None:
    mixed = []
    for t_s, one in packets:
        numbers = (7, 3) if is_up(one) else (3, 7)
        mixed += [(t_s, sll_2(one, numbers[0])), (t_s + 1e-6, sll_2(one, numbers[1]))]
    found = read(pcap(tmp_path / "wlan0.pcap", mixed, 276))
    assert [history.link for history in found.histories] == ["wlan0"]
    assert right(rate_bps(found, "wlan0"))


def test_what_others_behind_the_machine_download_is_on_one_device(
    tmp_path: Path, packets: list[Timed]
) -> None:
    """A container's download, whose address the machine changes: it comes in by device 3."""
    mixed = []
    for t_s, one in packets:
        inside = sll_2(one.replace(CLIENT, OTHER, 1), 8, out=not is_up(one))
        outside = sll_2(one, 3)
        both = (inside, outside) if is_up(one) else (outside, inside)
        mixed += [(t_s, both[0]), (t_s + 1e-6, both[1])]
    found = read(pcap(tmp_path / "wlan0.pcap", mixed, 276))
    assert [history.link for history in found.histories] == ["wlan0"]
    assert right(rate_bps(found, "wlan0"))


@pytest.mark.parametrize("mac", [b"\x02\0\0\0\0\x09", b""])
def test_devices_that_are_not_told_apart_are_refused(
    tmp_path: Path, packets: list[Timed], mac: bytes
) -> None:
    """Linux' older cooked header has no number of the device."""

    def cooked(one: bytes) -> bytes:
        went_out = one[12:16] == OTHER
        sender = mac if went_out else made_captures.ROUTER_MAC[: len(mac)]
        head = (b"\0\4" if went_out else b"\0\0") + b"\0\1" + bytes([0, len(mac)])
        return head + sender.ljust(8, b"\0") + b"\x08\0" + one

    first = [(t_s, sll(one, mac=made_captures.PHONE_MAC if mac else b"")) for t_s, one in packets]
    mixed = sorted([*first, *((t_s, cooked(one)) for t_s, one in other(packets))])
    assert refused(pcap(tmp_path / "any.pcap", mixed, 113)).startswith(
        "holds several devices, and Linux' cooked headers do not tell them apart; allowed: one"
    )


def test_a_connection_over_several_devices_is_refused(tmp_path: Path, packets: list[Timed]) -> None:
    mixed = [
        (t_s, sll_2(one, 3 + (index > 99 and index % 2)))
        for index, (t_s, one) in enumerate(packets)
    ]
    assert "its connections came over several devices" in refused(
        pcap(tmp_path / "any.pcap", mixed, 276)
    )


def test_a_late_packet_changes_nothing(tmp_path: Path, packets: list[Timed]) -> None:
    for by in (5, 800):  # 2 ms and 0.4 s.
        mixed = list(packets)
        mixed.insert(1000 + by, mixed.pop(1000))
        found = read(pcap(tmp_path / "a.pcap", ((t_s, ethernet(one)) for t_s, one in mixed)))
        assert right(rate_bps(found, "a"))
        assert found.length_s == pytest.approx(packets[-1][0] - packets[0][0])
        (note,) = found.notes
        assert note.startswith("a.pcap: 1 of ")
        assert note.endswith(" packets stand behind later ones: taken as they stand.")


@pytest.mark.parametrize("back_s", [0.2, 0.9, 3600.0])
def test_a_clock_that_was_set_back_is_read_on(
    tmp_path: Path, packets: list[Timed], back_s: float
) -> None:
    mixed = [
        (t_s - (back_s if index > 2000 else 0) + 10_000, ethernet(one))
        for index, (t_s, one) in enumerate(packets)
    ]
    found = read(pcap(tmp_path / "a.pcap", mixed))
    assert right(rate_bps(found, "a"))
    (note,) = found.notes
    assert note == f"a.pcap: The clock was set back by {back_s:g} s: time goes on without that."


def test_packets_in_no_order_are_refused(tmp_path: Path, packets: list[Timed]) -> None:
    mixed = [(t_s, ethernet(one)) for t_s, one in packets]
    random.Random(1).shuffle(mixed)
    assert "its times run back more than 3 times" in refused(pcap(tmp_path / "a.pcap", mixed))


def test_a_second_file_in_it_is_refused(tmp_path: Path, packets: list[Timed]) -> None:
    one = pcap(tmp_path / "a.pcap", ((t_s, ethernet(one)) for t_s, one in packets))
    length = one.stat().st_size
    one.write_bytes(one.read_bytes() * 2)
    assert refused(one).startswith(
        f"cannot be read as a capture: byte {length + 16}: a second capture begins; allowed: one in"
    )


def test_a_second_section_is_read_too(tmp_path: Path, packets: list[Timed]) -> None:
    first = pcapng(
        tmp_path / "a.pcapng", [("wlan0", 101, NS, 0)], ((t_s, 0, one) for t_s, one in packets)
    )
    second = pcapng(
        tmp_path / "b.pcapng",
        [("", 101, US, 0), ("rmnet0", 101, US, 0)],
        ((t_s, 1, one) for t_s, one in other(packets)),
        ">",
    )
    first.write_bytes(first.read_bytes() + second.read_bytes())
    found = read(first)
    assert right(rate_bps(found, "wlan0"))
    assert right(rate_bps(found, "rmnet0"), RATE_BPS / 2)


# --- Headers around IP


@pytest.mark.parametrize("name", READABLE)
def test_headers_around_ip_change_nothing(tmp_path: Path, packets: list[Timed], name: str) -> None:
    link_type, packed = READABLE[name]
    plain = pcap(tmp_path / "wlan0.pcap", packets, 101)
    file = tmp_path / "lte0.pcap"
    pcap(file, ((t_s, packed(one)) for t_s, one in packets), link_type)
    found = read(file)
    assert found.notes == ()
    assert rate_bps(found, "lte0") == pytest.approx(RATE_BPS, rel=0.01)
    assert found.histories[0].samples == read(plain).histories[0].samples


@pytest.mark.parametrize("name", OPAQUE)
def test_what_hides_the_downloads_is_named(tmp_path: Path, packets: list[Timed], name: str) -> None:
    link_type, packed = OPAQUE[name]
    file = tmp_path / "wlan0.pcap"
    pcap(file, ((t_s, packed(one)) for t_s, one in packets), link_type)
    assert name in refused(file)


@pytest.mark.parametrize(("others", "is_noted"), [(0, False), (1, False), (10, True), (300, None)])
def test_a_rate_that_is_a_part_of_what_came_is_said_or_refused(
    tmp_path: Path, packets: list[Timed], others: int, is_noted: bool | None
) -> None:
    """`others` packets of QUIC come for a hundred of TCP."""
    quic = bytearray(made_captures.udp(bytes(1472), 443, b""))
    quic[12:20] = b"\x0a\x00\x00\x01" + CLIENT
    mixed = []
    for number, (t_s, one) in enumerate(packets):
        mixed.append((t_s, ethernet(one)))
        more = (number + 1) * others // 100 - number * others // 100
        mixed += [(t_s, ethernet(bytes(quic)))] * more
    file = pcap(tmp_path / "wlan0.pcap", mixed)
    if is_noted is None:
        with pytest.raises(RecordingError, match=r"76 % of what came is not readable .* \(QUIC\)"):
            capture.read([file])
        return
    found = read(file)
    assert any("is QUIC: it does not count" in note for note in found.notes) == is_noted
    assert rate_bps(found, "wlan0") == pytest.approx(RATE_BPS, rel=0.01)


@pytest.mark.parametrize("length", range(0, 60, 4))
def test_packets_may_be_cut_off_anywhere(tmp_path: Path, packets: list[Timed], length: int) -> None:
    for number, (link_type, packed) in enumerate(READABLE.values()):
        file = tmp_path / f"{number}.pcap"
        cut = ((t_s, packed(one)[:length]) for t_s, one in packets[:50])
        pcap(file, cut, link_type)
        try:
            found = read(file)
        except RecordingError as error:
            assert str(error).startswith(f"{file}: ")
        else:
            assert found.histories[0].carried_bytes > 0


# --- Damage


CHANGES = ("twice", "swapped", "again", "cut", "set back", "lost", "others")


@pytest.mark.parametrize("seed", range(40 if TEST_ALL else 14))
def test_the_rate_is_right_or_the_file_is_refused(
    tmp_path: Path, packets: list[Timed], seed: int
) -> None:
    draw = random.Random(seed)
    changes = [(draw.choice(CHANGES), draw.uniform(0.05, 0.95)) for _ in range(draw.randint(1, 3))]
    kind, cut = draw.choice(["pcap", "pcapng"]), draw.randint(0, 40)
    mixed = list(packets)
    for change, share in changes:
        at = int(share * len(mixed))
        if change == "twice":
            mixed = [one for one in mixed for _ in (0, 1)]
        elif change == "swapped":
            mixed[at - 1], mixed[at] = mixed[at], mixed[at - 1]
        elif change == "again":
            mixed += mixed[at:]
        elif change == "cut":
            mixed = mixed[: max(at, len(mixed) // 2)]
        elif change == "set back":
            mixed = [(t_s - share * (n > at), one) for n, (t_s, one) in enumerate(mixed)]
        elif change == "lost":
            del mixed[at : at + 5]
        elif change == "others":
            mixed += [(t_s, b"\x45" + bytes(60)) for t_s, _ in mixed[-1:] for _ in range(at)]
    file = tmp_path / f"a.{kind}"
    if kind == "pcap":
        pcap(file, ((t_s, ethernet(one)) for t_s, one in mixed))
    else:
        pcapng(file, [("wlan0", 1, NS, 0)], ((t_s, 0, ethernet(one)) for t_s, one in mixed))
    content = file.read_bytes()
    file.write_bytes(content[: len(content) - cut])
    try:
        found = read(file)
    except RecordingError as error:
        assert str(error).startswith(f"{file}: ")
        assert "allowed: " in str(error) or "needed: " in str(error)
    else:
        assert rate_bps(found, "a") == pytest.approx(RATE_BPS, rel=0.1), changes
