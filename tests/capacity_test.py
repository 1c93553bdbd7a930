"""Tests that a changing link carries the integral of its rates, in virtual time."""

import json
import math
import random
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from conftest import PROBES, Linklab, lines, part_of, succeeded
from linklab.core.frames import FRAME_BYTES
from linklab.queues.registry import DISCIPLINES

ACK = 66
START_S = 0.2
SLOW_BPS, FAST_BPS = 10e3, 300e6

Rates = list[tuple[float, float]]
"""Pairs of a start in seconds and the rate from then on."""


def alternating(one_bps: float, other_bps: float, period_s: float) -> Callable[[float], Rates]:
    return lambda seconds: [
        (number * period_s, (one_bps, other_bps)[number % 2])
        for number in range(math.ceil(seconds / period_s))
    ]


def at_random(seed: int, fastest_bps: float) -> Callable[[float], Rates]:
    """Returns random rates, uniform over decades, each for 20 ms to 500 ms."""

    def rates(seconds: float) -> Rates:
        drawn, t_s, made = random.Random(seed), 0.0, []
        while t_s < seconds:
            power = drawn.uniform(math.log10(SLOW_BPS), math.log10(fastest_bps))
            made.append((t_s, 10**power))
            t_s = round(t_s + drawn.uniform(0.02, 0.5), 3)
        return made

    return rates


@pytest.mark.parametrize(
    ("name", "rates", "seconds", "frame"),
    part_of(
        [
            ("299-301", alternating(299e3, 301e3, 0.1), 5, FRAME_BYTES),
            ("99-101", alternating(99e3, 101e3, 0.1), 8, FRAME_BYTES),
            ("1-3", alternating(1e6, 3e6, 0.1), 4, FRAME_BYTES),
            ("steep", alternating(SLOW_BPS, FAST_BPS, 0.02), 2, FRAME_BYTES),
            ("any", at_random(1, FAST_BPS), 5, FRAME_BYTES),
            ("slow", at_random(2, 1e6), 20, FRAME_BYTES),
            ("slow-acks", at_random(3, 1e6), 10, ACK),
            ("middle", at_random(4, 10e6), 8, 700),
        ],
        2,
    ),
)
def test_a_backlogged_link_carries_its_integral_at_any_time(
    linklab: Linklab,
    scenario: Callable[..., Path],
    tmp_path: Path,
    name: str,
    rates: Callable[[float], Rates],
    seconds: int,
    frame: int,
) -> None:
    steps = rates(seconds + 1)
    check_integral(linklab, scenario, tmp_path, name, steps, seconds, frame)


@pytest.mark.parametrize("discipline", part_of([one.name for one in DISCIPLINES], 3))
def test_every_queue_discipline_lets_a_link_carry_its_integral(
    linklab: Linklab, scenario: Callable[..., Path], tmp_path: Path, discipline: str
) -> None:
    """At rates that change every 20 ms to 500 ms. CAKE drops all but one packet of such a flood. So
    the link must need more than 1 ms for a packet, because a burst comes every millisecond."""
    steps = at_random(5, 10e6)(9)
    queue = f"{{discipline: {discipline}, size: 1 MB}}"
    check_integral(linklab, scenario, tmp_path, "any", steps, 8, FRAME_BYTES, queue, 3.0)


def check_integral(
    linklab: Linklab,
    scenario: Callable[..., Path],
    tmp_path: Path,
    name: str,
    steps: Rates,
    seconds: int,
    frame: int,
    queue: str = "4 MB",
    load: float = 1.1,
) -> None:
    """Checks it within 0.5 % or two full frames, before and after every frame."""
    (tmp_path / "steps.csv").write_text(
        "t,down_mbit\n" + "".join(f"{t_s:g},{rate_bps / 1e6:.6f}\n" for t_s, rate_bps in steps)
    )
    file = scenario(
        name,
        lte=f"down: 300 Mbit/s, up: 10 Mbit/s, rtt: 20 ms, queue_down: {queue}, "
        "trace: {file: ./steps.csv, rate: recorded}",
    )
    fastest_bps = max(rate_bps for _, rate_bps in steps)
    run_dir = succeeded(
        linklab,
        *("exec", file, "--", "python3", PROBES / "downlink.py", "rmnet0"),
        *(load * fastest_bps, seconds, START_S, frame),
    ).run_dir
    applied: Rates = [
        (line["t_s"], line["down_rate_bps"] / 8)
        for line in lines(run_dir / "links.jsonl")
        if line["link"] == "lte"
    ]
    assert len(applied) >= len([t_s for t_s, _ in steps if t_s < seconds])
    starts_s = [t_s for t_s, _ in applied]
    carried = [
        0.0,
        *accumulate((after[0] - t_s) * rate for (t_s, rate), after in pairwise(applied)),
    ]

    def integral(t_s: float) -> float:
        number = bisect_right(starts_s, t_s) - 1
        return carried[number] + (t_s - starts_s[number]) * applied[number][1]

    arrivals = json.loads((run_dir / "arrivals.json").read_text())["arrivals"]
    begun = integral(arrivals[0][1] / 1e9)
    backlogged = [t_ns / 1e9 for _, t_ns in arrivals if t_ns / 1e9 <= START_S + seconds]
    for number, t_s in enumerate(backlogged):
        allowed = integral(t_s) - begun
        tolerance = max(2 * FRAME_BYTES, 0.005 * allowed)
        assert allowed - tolerance <= number * frame, t_s
        assert (number + 1) * frame <= allowed + tolerance, t_s
    # The time after the last frame counts as well.
    end = integral(START_S + seconds) - begun
    assert len(backlogged) * frame >= end - max(2 * FRAME_BYTES, 0.005 * end)


def test_every_opportunity_of_a_recording_passes_a_packet(
    linklab: Linklab, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """As in Mahimahi: alternating 2 and 3 packets per 100 ms, and after 3 s one per 100 ms."""
    times_ms = [200 * n + ms for n in range(15) for ms in (50, 100, 133, 167, 200)]
    times_ms += range(3100, 6001, 100)
    (tmp_path / "lone.down").write_text("".join(f"{ms}\n" for ms in times_ms))
    done = linklab("import", "lone.down", "--format", "mahimahi", "-o", "lone.csv")
    assert done.code == 0, done.err
    file = scenario(
        "lone",
        lte="down: 1 Mbit/s, up: 1 Mbit/s, rtt: 20 ms, trace: {file: ./lone.csv, rate: recorded}",
    )
    probe = ("python3", PROBES / "downlink.py", "rmnet0", 2e6, 6, 0)
    done = succeeded(linklab, "exec", file, "--", *probe)
    arrived = json.loads((done.run_dir / "arrivals.json").read_text())["arrivals"]
    for until_ms in range(500, 6001, 100):
        passed = sum(1 for _, t_ns in arrived if t_ns / 1e6 <= until_ms)
        assert abs(passed - sum(1 for ms in times_ms if ms <= until_ms)) <= 1, until_ms
