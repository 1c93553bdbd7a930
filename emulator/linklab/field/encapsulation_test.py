"""Tests captures of one download with every kind of header."""

from pathlib import Path

import pytest

from linklab.field import capture, capture_test
from linklab.field.recording import RecordingError
from linklab.importers import captures_for_test as made_captures
from linklab.importers.captures_for_test import OPAQUE, READABLE

RATE_BPS = capture_test.RATE_BPS


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> list[made_captures.Timed]:
    file = tmp_path_factory.mktemp("capture") / "wlan0.pcap"
    return made_captures.ip_packets(capture_test.download(file, length_s=2.0))


@pytest.mark.parametrize("name", READABLE)
def test_headers_around_ip_change_nothing(
    tmp_path: Path, packets: list[made_captures.Timed], name: str
) -> None:
    link_type, packed = READABLE[name]
    plain = made_captures.pcap(tmp_path / "wlan0.pcap", packets, 101)
    file = tmp_path / "lte0.pcap"
    made_captures.pcap(file, ((t_s, packed(one)) for t_s, one in packets), link_type)
    found = capture_test.read(file)
    assert found.notes == ()
    assert capture_test.rate_bps(found, "lte0") == pytest.approx(RATE_BPS, rel=0.01)
    assert found.histories[0].samples == capture_test.read(plain).histories[0].samples


@pytest.mark.parametrize("name", OPAQUE)
def test_what_hides_the_downloads_is_named(
    tmp_path: Path, packets: list[made_captures.Timed], name: str
) -> None:
    link_type, packed = OPAQUE[name]
    file = tmp_path / "wlan0.pcap"
    made_captures.pcap(file, ((t_s, packed(one)) for t_s, one in packets), link_type)
    with pytest.raises(RecordingError) as caught:
        capture.read([file])
    said = str(caught.value)
    assert said.startswith(f"{file}: ")
    assert name in said
    assert "allowed: " in said or "needed: " in said


@pytest.mark.parametrize(("others", "is_noted"), [(0, False), (1, False), (10, True), (300, None)])
def test_a_rate_that_is_a_part_of_what_came_is_said_or_refused(
    tmp_path: Path, packets: list[made_captures.Timed], others: int, is_noted: bool | None
) -> None:
    """`others` packets of QUIC come for a hundred of TCP."""
    quic = bytearray(made_captures.udp(bytes(1472), 443, b""))
    quic[12:20] = b"\x0a\x00\x00\x01" + made_captures.CLIENT
    mixed = []
    for number, (t_s, one) in enumerate(packets):
        mixed.append((t_s, made_captures.ethernet(one)))
        more = (number + 1) * others // 100 - number * others // 100
        mixed += [(t_s, made_captures.ethernet(bytes(quic)))] * more
    file = made_captures.pcap(tmp_path / "wlan0.pcap", mixed)
    if is_noted is None:
        with pytest.raises(RecordingError, match=r"76 % of what came is not readable .* \(QUIC\)"):
            capture.read([file])
        return
    found = capture_test.read(file)
    assert any("is QUIC: it does not count" in note for note in found.notes) == is_noted
    assert capture_test.rate_bps(found, "wlan0") == pytest.approx(RATE_BPS, rel=0.01)


@pytest.mark.parametrize("length", range(0, 60, 4))
def test_packets_may_be_cut_off_anywhere(
    tmp_path: Path, packets: list[made_captures.Timed], length: int
) -> None:
    for number, (link_type, packed) in enumerate(READABLE.values()):
        file = tmp_path / f"{number}.pcap"
        cut = ((t_s, packed(one)[:length]) for t_s, one in packets[:50])
        made_captures.pcap(file, cut, link_type)
        try:
            found = capture_test.read(file)
        except RecordingError as error:
            assert str(error).startswith(f"{file}: ")
        else:
            assert found.histories[0].carried_bytes > 0
