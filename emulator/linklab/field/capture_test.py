"""Tests captures of a download over a link with known properties."""

import functools
import itertools
import struct
from pathlib import Path
from typing import Any

import dpkt
import pytest

from linklab.field import capacity, capture
from linklab.field.capacity import CARRIER, HELD, LOST, Break
from linklab.field.recording import Recording, RecordingError
from linklab.importers import captures_for_test

CLIENT, SERVER = b"\x0a\x00\x00\x02", b"\x0a\x00\x00\x01"
RATE_BPS, RTT_S, FRAME = 24.224e6, 0.03, 1514
GAP_S = FRAME * 8 / RATE_BPS


def packet(
    from_client: bool,
    flags: int,
    seq: int,
    payload: int = 0,
    sent_ms: int = 0,
    echo_ms: int = 0,
    port: int = 40000,
) -> bytes:
    """Returns a frame of a TCP segment with timestamps. Its checksums are zero, as some devices leave
    them to be computed. dpkt, which computes them, takes ten times as long."""
    ports = (port, 443) if from_client else (443, port)
    tcp = struct.pack(
        ">HHIIBBHIIII", *ports, seq, 1, 8 << 4, flags, 65535, 0, 0x0101080A, sent_ms, echo_ms
    )
    ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    size = 20 + len(tcp) + payload
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 0, size, 0, 64, 6, 0, *ends)
    return bytes(12) + b"\x08\x00" + ip + tcp + bytes(payload)


def download(file: Path, length_s: float = 4.0, begin_s: float = 1000.0, **changes: Any) -> Path:
    """Writes the capture of `downloaded`."""
    file.write_bytes(downloaded(length_s, begin_s, **changes))
    return file


@functools.lru_cache(maxsize=4)
def downloaded(
    length_s: float,
    begin_s: float,
    *,
    handshake: bool = True,
    silent: tuple[float, float] = (9.0, 9.0),
    asks_again: bool = False,
    waited: bool = False,
    redials: bool = False,
    repeats: bool = False,
    ends_short: bool = False,
    lost: tuple[int, ...] = (),
    snaplen: int = 65535,
) -> bytes:
    """A link at its rate from the third round trip on, with a queue of 50 ms; the segments numbered
    in `lost` come half a second late; the one before the silence `ends_short`.
    What comes after it `waited` or was sent anew; the client asks for it, or
    `repeats` its first question, or `redials`."""
    made: list[tuple[float, bytes]] = []
    if handshake:
        syn, ack = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK
        made.append((0.0, packet(True, syn, 0, sent_ms=1)))
        made.append((RTT_S, packet(False, syn | ack, 0, sent_ms=1, echo_ms=1)))
    made.append((RTT_S, packet(True, dpkt.tcp.TH_ACK, 1, 100, sent_ms=31)))
    t_s, number, seq = 2 * RTT_S, 0, 1
    while t_s < length_s:
        at_s = t_s if t_s < silent[0] else t_s + silent[1] - silent[0]
        late_s = 0.5 if number in lost else 0.0
        sent_s = at_s - RTT_S - 0.05
        if number % 20 == 0 and sent_s > 2 * RTT_S:
            made.append((sent_s, packet(True, dpkt.tcp.TH_ACK, 101, sent_ms=round(sent_s * 1e3))))
        echo_ms = round(sent_s * 1e3) if number % 20 == 0 and sent_s > 2 * RTT_S else 0
        size = 900 if ends_short and t_s < silent[0] <= t_s + GAP_S else 1448
        sent_ms = 5000 + round((t_s if waited else at_s) * 1e3)
        made.append((at_s + late_s, packet(False, dpkt.tcp.TH_ACK, seq, size, sent_ms, echo_ms)))
        number, t_s, seq = number + 1, t_s + GAP_S, seq + size
    if asks_again or repeats:
        seq = 101 if asks_again else 1
        made.append((silent[1] - RTT_S, packet(True, dpkt.tcp.TH_ACK, seq, 100)))
    if redials:
        syn, ack = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK
        begun_s = silent[1] - 2 * RTT_S
        made.append((begun_s, packet(True, syn, 0, sent_ms=7, port=40001)))
        made.append(
            (begun_s + RTT_S, packet(False, syn | ack, 0, sent_ms=1, echo_ms=7, port=40001))
        )
        made.append((begun_s + RTT_S, packet(True, ack, 1, 100, sent_ms=8, port=40001)))
    packets = ((begin_s + at_s, content[:snaplen]) for at_s, content in sorted(made))
    return captures_for_test.pcap_content(packets)


def read(*files: Path) -> Recording:
    (found,) = capture.read(files)
    return found


def rate_bps(found: Recording, link: str) -> float:
    """Returns a link's mean capacity."""
    (history,) = (one for one in found.histories if one.link == link)
    return capacity.of_history(history, found.length_s).mean_bps()


def test_a_saturated_link_is_what_it_carried(tmp_path: Path) -> None:
    found = read(download(tmp_path / "wlan0.pcap"))
    (history,) = found.histories
    assert (history.link, history.device, found.contestant) == ("wlan0", "wlan0", "")
    known = capacity.of_history(history, found.length_s)
    assert known.mean_bps() == pytest.approx(RATE_BPS, rel=0.01)
    assert known.breaks == ()
    assert known.base_rtts[0][1] == pytest.approx(RTT_S, abs=1e-6)
    assert known.queue_bytes == pytest.approx(0.05 * RATE_BPS / 8, rel=0.05)
    count = round((4.0 - 2 * RTT_S) / GAP_S)
    assert found.size_bytes == pytest.approx(1448 * count, abs=2 * 1448)


def test_a_silence_is_the_link_s_unless_the_client_asked_after_it(tmp_path: Path) -> None:
    broken = read(download(tmp_path / "a.pcap", silent=(2.0, 3.0)))
    (one,) = capacity.of_history(broken.histories[0], broken.length_s).breaks
    assert one.start_s == pytest.approx(2.0, abs=0.12)
    assert one.end_s == pytest.approx(3.0, abs=0.05)
    paused = read(download(tmp_path / "b.pcap", silent=(2.0, 3.0), asks_again=True))
    assert capacity.of_history(paused.histories[0], paused.length_s).breaks == ()
    assert len(paused.histories[0].coming) == 2


def test_a_short_silence_is_a_pause_if_the_server_had_no_more_to_send(tmp_path: Path) -> None:
    """The client asked for more too late: half a round trip before it had what it asked for."""
    short: dict[str, Any] = {"silent": (2.0, 2.02), "asks_again": True}
    paused = read(download(tmp_path / "a.pcap", ends_short=True, **short))
    (first, second) = paused.histories[0].coming
    assert second[0] - first[1] == pytest.approx(0.02, abs=2 * GAP_S)
    slower = read(download(tmp_path / "b.pcap", waited=True, **short))
    assert len(slower.histories[0].coming) == 1


def test_a_short_silence_is_a_pause_if_nothing_waited_in_it(tmp_path: Path) -> None:
    """The server might send no more before it had been told of what came."""
    for name, more, count in (
        ("a", {}, 2),
        ("b", {"waited": True}, 1),
        ("c", {"lost": (3855,)}, 1),
    ):
        found = read(download(tmp_path / f"{name}.pcap", silent=(2.0, 2.02), **more))
        assert len(found.histories[0].coming) == count, name


def breaks(found: Recording, link: str) -> tuple[Break, ...]:
    history = next(one for one in found.histories if one.link == link)
    return capacity.of_history(history, found.length_s).breaks


def test_the_server_s_clock_tells_what_waited_from_what_was_sent_anew(tmp_path: Path) -> None:
    silent = (2.0, 3.0)
    (held,) = breaks(read(download(tmp_path / "a.pcap", silent=silent, waited=True)), "a")
    assert held.kind == HELD
    assert (held.start_s, held.end_s) == pytest.approx(silent, abs=0.02)
    (lost,) = breaks(read(download(tmp_path / "b.pcap", silent=silent)), "b")
    assert lost.kind == LOST
    assert lost.start_s == pytest.approx(2.0 - 0.05 - RTT_S / 2, abs=0.02)


def test_a_link_that_is_dialled_anew_was_gone_until_then(tmp_path: Path) -> None:
    file = download(tmp_path / "a.pcap", silent=(2.0, 3.0), redials=True)
    (gone,) = breaks(read(file), "a")
    assert gone.kind == CARRIER
    assert (gone.start_s, gone.end_s) == pytest.approx((2.0, 3.0 - 2 * RTT_S), abs=0.02)
    file = download(tmp_path / "b.pcap", silent=(2.0, 3.0), redials=True, ends_short=True)
    assert breaks(read(file), "b") == ()  # The server had sent all: nobody waited.


def test_a_link_that_stays_silent_in_the_midst_of_data_is_away_to_the_end(tmp_path: Path) -> None:
    wifi = download(tmp_path / "wlan0.pcap", length_s=2.0)
    lte = download(tmp_path / "rmnet0.pcap")
    (lost,) = breaks(read(wifi, lte), "wlan0")
    assert (lost.kind, lost.has_ended) == (LOST, False)
    assert lost.end_s == pytest.approx(4.0, abs=0.01)


def test_a_question_that_is_sent_again_is_none(tmp_path: Path) -> None:
    file = download(tmp_path / "a.pcap", silent=(2.0, 3.0), repeats=True)
    assert len(read(file).histories[0].coming) == 1


def test_packets_behind_a_lost_one_are_counted(tmp_path: Path) -> None:
    (history,) = read(download(tmp_path / "a.pcap", lost=(100,))).histories
    assert history.samples[-1].out_of_order == pytest.approx(0.5 / GAP_S, abs=2)


def test_captures_of_one_time_are_one_recording(tmp_path: Path) -> None:
    wifi = download(tmp_path / "wlan0.pcap")
    lte = download(tmp_path / "rmnet0.pcap", begin_s=1001.0)
    later = download(tmp_path / "wlan1.pcap", begin_s=2000.0)
    both, alone = capture.read([lte, later, wifi])
    assert [one.link for one in both.histories] == ["wlan0", "rmnet0"]
    assert both.length_s == pytest.approx(5.0, abs=0.01)
    assert both.histories[1].coming[0][0] == pytest.approx(1.0 + 2 * RTT_S, abs=1e-3)
    assert [one.link for one in alone.histories] == ["wlan1"]


def test_headers_are_enough(tmp_path: Path) -> None:
    whole = read(download(tmp_path / "a.pcap"))
    cut = read(download(tmp_path / "b.pcap", snaplen=96))
    assert cut.histories[0].carried_bytes == whole.histories[0].carried_bytes
    assert cut.size_bytes == whole.size_bytes


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_capture_that_was_cut_off_is_taken_to_there(tmp_path: Path, kind: str) -> None:
    """As where tcpdump was killed, or the disk was full."""
    file = download(tmp_path / "a.pcap")
    if kind == "pcapng":
        file = as_pcapng(file, tmp_path / "b.pcapng")
    content, whole = file.read_bytes(), read(file)
    assert whole.is_complete
    for more in (1, 7, 20, 700):
        file.write_bytes(content[: len(content) // 2 + more])
        cut = read(file)
        assert not cut.is_complete
        assert cut.length_s < whole.length_s
        known = capacity.of_history(cut.histories[0], cut.length_s)
        assert known.mean_bps() == pytest.approx(RATE_BPS, rel=0.02)


@pytest.mark.parametrize("packets", [4, 5])
def test_a_capture_of_one_moment_tells_no_rate(tmp_path: Path, packets: int) -> None:
    file = download(tmp_path / "a.pcap")
    with file.open("rb") as opened:
        first = list(itertools.islice(dpkt.pcap.Reader(opened), packets))
    cut = read(captures_for_test.pcap(file, first))
    with pytest.raises(capacity.CapacityError, match="seen at one moment"):
        capacity.of_history(cut.histories[0], cut.length_s)


def as_pcapng(file: Path, to: Path) -> Path:
    """The same packets as Wireshark saves them."""
    with file.open("rb") as opened, to.open("wb") as made:
        writer = dpkt.pcapng.Writer(made)
        for t_s, content in dpkt.pcap.Reader(opened):
            writer.writepkt(content, float(t_s))
    return to


def test_captures_of_several_days_may_be_called_the_same(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    one = download(tmp_path / "1" / "wlan0.pcap")
    other = download(tmp_path / "2" / "wlan0.pcap", begin_s=90_000.0)
    assert [found.source for found in capture.read([other, one])] == [str(one), str(other)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xd4\xc3\xb2\xa1", "cannot be read as a capture: "),
        (b"hello", "cannot be read as a capture: "),
    ],
)
def test_what_is_no_capture_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(content)
    with pytest.raises(RecordingError) as caught:
        capture.read([file])
    assert str(caught.value).startswith(f"{file}: {said}")


def test_a_capture_without_a_handshake_tells_no_end_from_the_other(tmp_path: Path) -> None:
    file = download(tmp_path / "a.pcap", handshake=False)
    with pytest.raises(RecordingError) as caught:
        capture.read([file])
    assert str(caught.value) == (
        f"{file}: no handshake of TCP is in it; "
        "needed: what tcpdump saw at the client of a download, from its beginning on"
    )
