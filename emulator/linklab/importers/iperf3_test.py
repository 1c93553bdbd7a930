import io
import json
from pathlib import Path
from typing import Any

import pytest

from linklab.importers import iperf3
from linklab.traces.trace import TraceError, TraceFile, TraceSample

# Recorded with iperf3 3.12 between two network namespaces; token buckets let 20 Mbit/s of whole
# frames down to the client and 8 Mbit/s up.
RECORDINGS = Path(__file__).with_name("recordings")
DOWN_BPS, UP_BPS = 20e6, 8e6


def recorded(name: str) -> bytes:
    return (RECORDINGS / f"iperf3-{name}.json").read_bytes()


def recording(content: bytes, device: str = "client", *, only_up: bool = False) -> TraceFile:
    return iperf3.read(io.BytesIO(content), "x.json", device, only_up=only_up)


def read(content: bytes, device: str = "client", *, only_up: bool = False) -> list[TraceSample]:
    return list(recording(content, device, only_up=only_up).samples)


def document(intervals: list[list[dict[str, Any]]], **changes: Any) -> dict[str, Any]:
    """What a client writes of a reverse TCP test, with `changes` to `test_start`."""
    test_start = {"protocol": "TCP", "num_streams": 1, "blksize": 131072, "reverse": 1, **changes}
    return {
        "start": {"connecting_to": {"host": "h", "port": 5201}, "test_start": test_start},
        "intervals": [{"streams": streams, "sum": {}} for streams in intervals],
        "end": {},
    }


def encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent="\t").encode()


def stream(bytes: int, seconds: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"socket": 5, "bytes": bytes, "seconds": seconds, "omitted": False, **more}


def as_events(content: bytes) -> bytes:
    """The same test as iperf3 3.17 and later write it with --json-stream (esnet/iperf PR 1098)."""
    whole = json.loads(content)
    events = [{"event": "start", "data": whole["start"]}]
    events += [{"event": "interval", "data": interval} for interval in whole["intervals"]]
    events.append({"event": "end", "data": whole["end"]})
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def mean_bps(trace: list[TraceSample]) -> float:
    length_ns = sum(sample.length_ns for sample in trace)
    return sum((sample.down_bps or 0) * sample.length_ns for sample in trace) / length_ns


@pytest.mark.parametrize("name", ["tcp-reverse", "udp-reverse"])
def test_a_measured_link_comes_out_as_it_was_shaped(name: str) -> None:
    trace = read(recorded(name))
    assert mean_bps(trace) == pytest.approx(DOWN_BPS, rel=0.01)
    assert [round(sample.length_ns / 1e9, 2) for sample in trace] == [0.5] * 4
    assert {sample.up_bps for sample in trace} == {None}
    assert {sample.rtt_s for sample in trace} == {None}


def test_both_directions_come_from_their_streams() -> None:
    opened = recording(recorded("tcp-bidir"))
    trace = list(opened.samples)
    intervals = json.loads(recorded("tcp-bidir"))["intervals"]
    for sample, interval in zip(trace, intervals, strict=True):
        frames = 1514 / 1448
        down, up = interval["sum_bidir_reverse"], interval["sum"]
        assert sample.down_bps == pytest.approx(down["bits_per_second"] * frames, rel=1e-3)
        assert sample.up_bps == pytest.approx(up["bits_per_second"] * frames, rel=1e-3)
    assert opened.columns == {"up", "rtt"}
    assert "the uplink is what was sent, not what arrived: the server's JSON has that" in (
        opened.notes
    )


def test_the_servers_file_has_what_arrived_of_the_uplink() -> None:
    with pytest.raises(TraceError, match="only the uplink was measured"):
        read(recorded("udp-forward-server"))
    opened = recording(recorded("udp-forward-server"), only_up=True)
    ups = [sample.up_bps or 0 for sample in opened.samples]
    assert ups[:2] == pytest.approx([UP_BPS] * 2, rel=0.05)
    assert opened.notes == []


def test_the_phone_may_have_been_the_server() -> None:
    trace = read(recorded("udp-forward-server"), "server")
    assert trace[0].down_bps == pytest.approx(UP_BPS, rel=0.05)


def test_time_that_was_omitted_makes_no_interval_slow() -> None:
    """-O 1 -i 0.5: iperf3 says 1.0007 s of the bytes of 0.5005 s."""
    trace = read(recorded("tcp-forward"), only_up=True)
    assert [round(sample.length_ns / 1e9, 2) for sample in trace] == [0.5, 0.5]
    assert trace[0].up_bps == pytest.approx(390_960 * 8 / 0.50049 * 1514 / 1448, rel=1e-6)
    sent_bits = json.loads(recorded("tcp-forward"))["end"]["sum_sent"]["bytes"] * 8
    bits = sum(sample.length_ns * (sample.up_bps or 0) for sample in trace) / 1e9
    assert bits == pytest.approx(sent_bits * 1514 / 1448, rel=1e-3)


def as_file(content: bytes, streamed: bool) -> bytes:
    return as_events(content) if streamed else content


@pytest.mark.parametrize(
    ("streamed", "between"), [(False, b""), (False, b"\n"), (True, b"\n"), (True, b"\n\n")]
)
def test_a_second_test_is_refused(streamed: bool, between: bytes) -> None:
    """As `iperf3 --logfile` appends it, and as a server writes one client's after another's."""
    first = as_file(encoded(document([[stream(1448)]])), streamed).rstrip() + between
    second = as_file(recorded("udp-reverse"), streamed)
    with pytest.raises(TraceError) as caught:
        read(first + second)
    assert "something follows the first test; allowed: one test in a file" in str(caught.value)


def test_a_second_test_is_refused_where_the_first_one_has_no_end() -> None:
    first, second = as_events(recorded("tcp-reverse")), as_events(recorded("udp-reverse"))
    broken_off = b"".join(first.splitlines(keepends=True)[:-1])
    with pytest.raises(TraceError, match=r"^x\.json:6: something follows the first test"):
        read(broken_off + second)
    headless = b"".join(second.splitlines(keepends=True)[1:])
    with pytest.raises(TraceError, match=r"^x\.json:7: something follows the first test"):
        read(first + headless)


def test_a_stream_that_is_cut_off_keeps_its_whole_intervals() -> None:
    content = as_events(recorded("tcp-reverse"))
    whole = read(content)
    counts = set()
    for length in range(0, len(content), 7):
        try:
            opened = recording(content[:length])
            trace = list(opened.samples)
        except TraceError:
            counts.add(0)
            continue
        assert trace == whole[: len(trace)]
        counts.add(len(trace))
        assert length == len(content) - 1 or opened.notes == [
            "the file is cut off: it is read up to its last whole interval"
        ]
    assert counts == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("name", ["tcp-reverse", "tcp-bidir", "udp-reverse"])
def test_a_stream_of_events_says_the_same(name: str) -> None:
    assert read(as_events(recorded(name))) == read(recorded(name))


def test_layout_does_not_matter() -> None:
    content = recorded("tcp-bidir")
    compact = json.dumps(json.loads(content)).encode()
    assert read(compact) == read(content)
    assert read(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")) == read(content)


def test_payload_becomes_whole_frames() -> None:
    assert read(encoded(document([[stream(1448 * 1000)]]))) == [TraceSample(10**9, 1514 * 8 * 1000)]
    udp = document([[stream(1000 * 1000)]], protocol="UDP", blksize=1000)
    assert read(encoded(udp)) == [TraceSample(10**9, 1042 * 8 * 1000)]
    # 8 bytes of UDP and 3000 of payload are three fragments of up to 1480.
    fragments = document([[stream(3000 * 1000)]], protocol="UDP", blksize=3000)
    assert read(encoded(fragments)) == [TraceSample(10**9, (3000 + 8 + 3 * 34) * 8 * 1000)]


def test_the_rtt_of_what_was_sent() -> None:
    both = [stream(1448, sender=False), stream(1448, sender=True, rtt=48_500)]
    assert read(encoded(document([both])))[0].rtt_s == 0.0485


@pytest.mark.parametrize("seconds", [0.0, 1e-300, 1e-7, 0.0009])
def test_intervals_too_short_for_a_sample_are_left_out(seconds: float) -> None:
    short, whole = [stream(10**15, seconds)], [stream(1448)]
    assert read(encoded(document([short, whole, short]))) == [TraceSample(10**9, 1514 * 8)]


def test_a_test_that_broke_off_keeps_what_it_measured() -> None:
    broken = {**document([[stream(1448)]]), "error": "the server has terminated"}
    opened = recording(encoded(broken))
    assert len(list(opened.samples)) == 1
    assert opened.notes == ["iperf3 broke off: the server has terminated"]


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (b"", "x.json: ", "the file is empty"),
        (b"{}", "x.json: ", "'start' is missing"),
        (b'{\n\t"start":\t{\n', "x.json: ", "truncated"),
        (b'{\n"a": nan}', "x.json: ", "malformed"),
        (encoded({"start": {"connected": []}, "intervals": []}), "x.json: ", "`test_start`"),
        (encoded({"error": "unable to connect"}), "x.json: ", "measured nothing: unable to"),
        (encoded({**document([]), "error": "connection refused"}), "x.json: ", "measured nothing"),
        (encoded(document([])), "x.json: ", "no interval was measured"),
        (encoded(document([[stream(1)]], protocol="SCTP")), "x.json: ", "a test of SCTP"),
        (encoded(document([[stream(-1)]])), "x.json: intervals[0]: ", "of -1 bytes in 1.0 s"),
        (encoded(document([[stream(10**12)]])), "x.json: intervals[0]: ", "of 8364641 Mbit/s"),
        (encoded(document([[{"seconds": 1.0}]])), "x.json: ", "$.intervals[0].streams[0]"),
        (encoded(document([[stream(1)], [stream(1, 2e6)]])), "x.json: intervals[1]: ", "too long"),
        (encoded(document([[stream(1), stream(1, 1e300)]])), "x.json: intervals[0]: ", "too long"),
        (encoded(document([[stream(1), stream(10**15, 1e-300)]])), "x.json: int", "inf Mbit/s"),
        (as_events(encoded(document([[stream(10**400)]]))), "x.json:2: ", "$.streams[0].bytes"),
        (encoded(document([[stream(1, sender=True)]])), "x.json: intervals[0]: ", "only the upl"),
        (
            as_events(encoded(document([[stream(1)], [stream(1)]]))).replace(b"]", b"", 1),
            "x.json:2: ",
            "malformed",
        ),
        (b'{"event":"error","data":"no route"}\n', "x.json:1: ", "measured nothing: no route"),
    ],
)
def test_errors_say_place_reason_and_what_is_allowed(content: bytes, where: str, what: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(content)
    said = str(caught.value)
    assert said.startswith(where)
    assert what in said


@pytest.mark.parametrize("around", [b'{"start":%s}', b'{"event":"start","data":%s}\n'])
def test_deep_nesting_is_refused(around: bytes) -> None:
    with pytest.raises(TraceError, match="not what iperf3 writes: "):
        read(around % (b"[" * 5_000 + b"]" * 5_000))


def test_a_document_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iperf3, "_MAX_BYTES", 99)
    with pytest.raises(TraceError, match="allowed: the output of --json-stream"):
        read(recorded("tcp-reverse"))


def test_a_downlink_is_no_uplink() -> None:
    with pytest.raises(TraceError, match="only the downlink was measured"):
        read(recorded("udp-reverse"), only_up=True)


def test_old_files_tell_the_direction_once_for_all_streams() -> None:
    """Their streams have no `sender`."""
    assert read(encoded(document([[stream(1448)]], reverse=1)))
    forward = encoded(document([[stream(1448)]], reverse=0))
    assert read(forward, only_up=True)[0].up_bps == 1514 * 8
    with pytest.raises(TraceError, match="only the uplink was measured"):
        read(forward)
    by_server = document([[stream(1448)]], reverse=0)
    by_server["start"]["accepted_connection"] = {"host": "h", "port": 1}
    assert read(encoded(by_server), "server")[0].down_bps == 1514 * 8
