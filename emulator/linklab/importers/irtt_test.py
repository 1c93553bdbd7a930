import io
import json
from typing import Any

import pytest

from linklab.importers import irtt
from linklab.importers.registry import format_of
from linklab.traces.trace import TraceError, TraceFile


def trip(
    seqno: int, rtt_ms: float | None, lost: object = None, every_ms: int = 10
) -> dict[str, Any]:
    """A round trip as irtt 0.9 writes it."""
    sent = 22_211_105 + seqno * every_ms * 10**6
    client: dict[str, Any] = {
        "receive": {},
        "send": {"wall": 1_707_277_440_772_833_721 + sent, "monotonic": sent},
    }
    word = lost if lost is not None else ("true" if rtt_ms is None else "false")
    return {
        "seqno": seqno,
        "lost": word,
        "timestamps": {"client": client, "server": {"receive": {}, "send": {}}},
        "delay": {} if rtt_ms is None else {"receive": -1, "rtt": round(rtt_ms * 1e6), "send": 9},
        "ipdv": {},
    }


def document(trips: list[dict[str, Any]]) -> bytes:
    head = {
        "version": {"irtt": "0.9.1", "protocol": 1, "json_format": 1},
        "system_info": {"os": "linux"},
        "config": {"params": {"interval": 10_000_000}},
        "stats": {"rtt": {"n": 3}},
    }
    return json.dumps({**head, "round_trips": trips}, indent=4).encode()


def recording(content: bytes, bin_s: float | None = None) -> TraceFile:
    return irtt.read(io.BytesIO(content), "x.json", bin_s)


TRIPS = [trip(number, None if number % 10 == 3 else 20 + number // 100) for number in range(300)]


def test_samples_have_median_and_loss() -> None:
    opened = recording(document(TRIPS))
    trace = list(opened.samples)
    assert [(one.length_ns, one.rtt_s, one.loss_ratio) for one in trace] == [
        (10**9, 0.02, 0.1),
        (10**9, 0.021, 0.1),
        (10**9, 0.022, 0.1),
    ]
    assert opened.columns == {"rtt", "loss"}
    assert not opened.has_rates
    assert opened.notes == [
        "30 of 300 probes were lost, either way (10 %, 1 in a row on average)",
        "this loss is the downlink's in the trace",
    ]


def test_what_was_lost_on_the_uplink_is_not_the_downlinks() -> None:
    trips = [trip(n, None, "true_up") if n % 2 else trip(n, 20) for n in range(200)]
    opened = recording(document(trips))
    assert {one.loss_ratio for one in opened.samples} == {0.0}
    assert opened.notes == ["100 probes were lost on the uplink: a trace has no loss of it"]


def test_older_and_newer_files_say_lost_otherwise() -> None:
    trips = [trip(n, None if n == 5 else 20, lost=n == 5) for n in range(100)]
    assert [one.loss_ratio for one in recording(document(trips)).samples] == [0.01]


def test_it_is_told_from_iperf3() -> None:
    assert format_of(document(TRIPS), "x").name == "irtt"
    assert format_of(json.dumps(json.loads(document(TRIPS))).encode(), "x").name == "irtt"


def test_a_file_that_is_cut_off_is_read_up_to_the_last_round_trip() -> None:
    whole = document(TRIPS)
    opened = recording(whole[: len(whole) * 2 // 3])
    assert len(list(opened.samples)) == 2
    assert "the file is cut off: it is read up to its last whole round trip" in opened.notes


def _wrong(**changes: object) -> bytes:
    return document([trip(0, 20), {**trip(1, 20), **changes}])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "x.json:1: not valid JSON: parse error: premature EOF; allowed: the output of irtt"),
        (document([]), "x.json:16: 'round_trips' is missing or empty; needed: the output of irtt"),
        (_wrong(delay={}), "x.json:58: delay.rtt: is missing or negative; needed: ns of a round"),
        (_wrong(seqno=0), "x.json:62: seqno: 0 comes again; allowed: one test in a file"),
        (_wrong(seqno="one"), "x.json:62: not what irtt writes: Expected `int`, got `str`"),
        (b'{"round_trips": ' + b"[" * 100, "x.json:1: is nested too deeply; allowed: the output"),
    ],
)
def test_errors_say_line_reason_and_what_is_allowed(content: bytes, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        list(recording(content).samples)
    said = str(caught.value)
    expected = message.split(":", 2)
    assert said.split(":", 2)[0] == expected[0]
    assert said.split(":", 2)[2].startswith(expected[2])
