"""Tests damaged recordings of known rates: the rate is right, or the file is refused with line and
reason. Of the data sets, which share a reader, this is `ucc`."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from linklab.importers import iperf3_test, ping_test
from linklab.importers.importing import import_file
from linklab.traces import plain
from linklab.traces.trace import TraceError

RATES_MBIT: Final = [8 + (second * 7) % 5 for second in range(60)]
MEAN_BPS: Final = sum(RATES_MBIT) / len(RATES_MBIT) * 1e6


def csv() -> str:
    lines = [f"{t},{rate}\n" for t, rate in enumerate(RATES_MBIT)]
    return "t,down_mbit\n" + "".join(lines) + "# end: 60 s\n"


def ucc() -> str:
    lines = [f"2019.12.16_13.40.{t:02},B,{1000 * rate},0,-\n" for t, rate in enumerate(RATES_MBIT)]
    return "Timestamp,Operatorname,DL_bitrate,UL_bitrate,PINGAVG\n" + "".join(lines)


def mahimahi() -> str:
    times_ms: list[int] = []
    for second, rate in enumerate(RATES_MBIT):
        count = round(rate * 1e6 / 8 / 1514)
        times_ms += [1 + second * 1000 + index * 1000 // count for index in range(count)]
    return "".join(f"{time}\n" for time in [*times_ms, 60_000])


def _iperf3() -> bytes:
    payload = 1448 / 1514
    intervals = [
        [iperf3_test.stream(round(rate * 1e6 / 8 * payload), start=float(t), end=t + 1.0)]
        for t, rate in enumerate(RATES_MBIT)
    ]
    return iperf3_test.encoded(iperf3_test.document(intervals))


def iperf3() -> str:
    return json.dumps(json.loads(_iperf3()), indent=1) + "\n"


def iperf3_events() -> str:
    return iperf3_test.as_events(_iperf3()).decode()


FORMATS: Final[dict[str, Callable[[], str]]] = {
    "csv": csv,
    "ucc": ucc,
    "mahimahi": mahimahi,
    "iperf3": iperf3,
    "iperf3 by events": iperf3_events,
}


def twice(text: str, draw: random.Random) -> str:
    return text + text


def twice_without_a_head(text: str, draw: random.Random) -> str:
    return text + text.partition("\n")[2]


def cut(text: str, draw: random.Random) -> str:
    return text[: draw.randrange(len(text) // 2, len(text))]


def with_a_line_again(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = draw.randrange(1, len(lines))
    return "".join([*lines[:at], lines[at], *lines[at:]])


def with_lines_again(text: str, draw: random.Random) -> str:
    return "".join(line * 2 for line in text.splitlines(keepends=True))


def with_two_lines_swapped(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = draw.randrange(2, len(lines) - 1)
    lines[at - 1], lines[at] = lines[at], lines[at - 1]
    return "".join(lines)


def shuffled(text: str, draw: random.Random) -> str:
    first, *lines = text.splitlines(keepends=True)
    draw.shuffle(lines)
    return first + "".join(lines)


def without_a_line(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[draw.randrange(1, len(lines))]
    return "".join(lines)


def interleaved(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    half = len(lines) // 2
    return "".join(a + b for a, b in zip(lines[:half], lines[half:], strict=False))


DRAWN: Final = (cut, with_a_line_again, with_two_lines_swapped, shuffled, without_a_line)
DAMAGES: Final = (twice, twice_without_a_head, with_lines_again, interleaved, *DRAWN)

Damage = Callable[[str, random.Random], str]


# Equal lines of mahimahi's are several packets in one millisecond.
DAMAGED = [
    (format, damage)
    for format in FORMATS
    for damage in (None, *DAMAGES)
    if (format, damage) != ("mahimahi", with_lines_again)
]


@pytest.mark.parametrize(("format", "damage"), DAMAGED)
def test_a_damaged_recording_has_its_rate_or_is_refused(
    tmp_path: Path, format: str, damage: Damage | None
) -> None:
    file = tmp_path / "recorded"
    whole = FORMATS[format]()
    for seed in range(12 if damage in DRAWN else 1):
        file.write_text(damage(whole, random.Random(seed)) if damage else whole)
        try:
            report = import_file(file, tmp_path / "x.csv", overwrite=True)
            assert report.down is not None
        except TraceError as error:
            assert damage is not None
            assert re.match(rf"{re.escape(str(file))}:", str(error)), error
            assert "allowed: " in str(error) or "needed: " in str(error)
        else:
            off, lost_s = (0.05, 31 if damage is cut else 2) if damage else (1e-3, 1e-3)
            assert report.notes == () or damage
            assert report.down.mean_bps == pytest.approx(MEAN_BPS, rel=off), (seed, report.notes)
            assert report.down.duration_s == pytest.approx(60, abs=lost_s)


def ping() -> str:
    """20 ms, then 60 ms, in turn for 10 s."""
    return ping_test.delays(count=3000, lost=0.05)


def ping_without_times() -> str:
    lines = [
        f"64 bytes from 192.0.2.1: icmp_seq={k + 1} ttl=9 time={20 + 40 * (k // 10 % 2)} ms\n"
        for k in range(60)
    ]
    head = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n"
    end = "\n--- 192.0.2.1 ping statistics ---\n60 packets transmitted, 60 received, 0% packet loss, time 59012ms\n"
    return head + "".join(lines) + end


DELAYS: Final[dict[str, tuple[Callable[[], str], float]]] = {
    "ping": (ping, 0.055),
    "ping without times": (ping_without_times, 0.04),
}
"""A recording of 60 s of each kind, and its mean round trip."""


@pytest.mark.parametrize(
    "damage", [None, *DAMAGES], ids=lambda one: getattr(one, "__name__", "none")
)
@pytest.mark.parametrize("name", DELAYS)
def test_recorded_delays_have_their_mean_or_are_refused(
    tmp_path: Path, name: str, damage: Damage | None
) -> None:
    file = tmp_path / "recorded"
    made, mean_s = DELAYS[name]
    for seed in range(2 if damage in DRAWN else 1):
        file.write_text(damage(made(), random.Random(seed)) if damage else made())
        try:
            report = import_file(file, tmp_path / "x.csv", overwrite=True)
        except TraceError as error:
            assert damage is not None
            assert re.match(rf"{re.escape(str(file))}:", str(error)), error
            assert "allowed: " in str(error) or "needed: " in str(error)
        else:
            trace = plain.load(tmp_path / "x.csv")
            length_ns = sum(one.length_ns for one in trace)
            found_s = sum((one.rtt_s or 0) * one.length_ns for one in trace) / length_ns
            assert found_s == pytest.approx(mean_s, rel=0.35 if damage is cut else 0.1), report
            assert length_ns == pytest.approx(60e9, abs=31e9 if damage is cut else 2e9), report
