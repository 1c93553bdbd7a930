"""Tests damaged recordings of known rates: the rate is right, or the file is refused with line and
reason."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from linklab.traces import iperf3_test, ucc_test
from linklab.traces.importing import import_file
from linklab.traces.trace import TraceError

RATES_MBIT: Final = [8 + (second * 7) % 5 for second in range(60)]
MEAN_BPS: Final = sum(RATES_MBIT) / len(RATES_MBIT) * 1e6


def csv() -> str:
    lines = [f"{t},{rate}\n" for t, rate in enumerate(RATES_MBIT)]
    return "t,down_mbit\n" + "".join(lines) + "# end: 60 s\n"


def ucc() -> str:
    clock = [f"13.{40 + t // 60}.{t % 60:02}" for t in range(60)]
    rows = zip(clock, RATES_MBIT, strict=True)
    return ucc_test.HEADER + "".join(ucc_test.row(at, str(1000 * rate)) for at, rate in rows)


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


DAMAGES: Final = (
    twice,
    twice_without_a_head,
    cut,
    with_a_line_again,
    with_lines_again,
    with_two_lines_swapped,
    shuffled,
    without_a_line,
    interleaved,
)


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_recording_has_its_rate(tmp_path: Path, format: str) -> None:
    file = tmp_path / "recorded"
    file.write_text(FORMATS[format]())
    report = import_file(file, tmp_path / "x.csv")
    assert report.down is not None
    assert report.down.mean_bps == pytest.approx(MEAN_BPS, rel=0.003)
    assert report.down.duration_s == pytest.approx(60)
    assert report.notes == ()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_recording_has_its_rate_or_is_refused(
    tmp_path: Path, format: str, damage: Callable[[str, random.Random], str]
) -> None:
    if (format, damage) == ("mahimahi", with_lines_again):
        pytest.skip("equal lines are several packets in one millisecond")
    file = tmp_path / "recorded"
    whole = FORMATS[format]()
    for seed in range(12):
        file.write_text(damage(whole, random.Random(seed)))
        try:
            report = import_file(file, tmp_path / "x.csv", overwrite=True)
            assert report.down is not None
        except TraceError as error:
            assert re.match(rf"{re.escape(str(file))}:\d+: ", str(error)), error
            assert "allowed: " in str(error) or "needed: " in str(error)
        else:
            assert report.down.mean_bps == pytest.approx(MEAN_BPS, rel=0.05), (seed, report.notes)
            assert report.down.duration_s == pytest.approx(60, abs=31 if damage is cut else 2)
