"""Tests that a changing link carries the integral of its rates, in virtual time."""

import json
import random
from bisect import bisect_right
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from conftest import PROBES, Linklab, ScenarioFile, lines, part_of, succeeded
from linklab.core.frames import FRAME_BYTES
from linklab.queues.registry import DISCIPLINES

START_S, SECONDS = 0.2, 8
LOAD = 3.0
"""CAKE drops all but one packet of such a flood. So the link must need more than 1 ms for a packet,
because a burst comes every millisecond."""

Rates = list[tuple[float, float]]
"""Pairs of a start in seconds and the rate from then on."""


def at_random(seed: int, seconds: float) -> Rates:
    """Returns random rates of 10 kbit/s to 10 Mbit/s, uniform over decades, each for 20 ms to 500 ms."""
    drawn, t_s, made = random.Random(seed), 0.0, []
    while t_s < seconds:
        made.append((t_s, 10 ** drawn.uniform(4, 7)))
        t_s = round(t_s + drawn.uniform(0.02, 0.5), 3)
    return made


@pytest.mark.parametrize("discipline", part_of([one.name for one in DISCIPLINES], 3))
def test_every_queue_discipline_lets_a_link_carry_its_integral(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path, discipline: str
) -> None:
    """Within 0.5 % or two full frames, before and after every frame. `packets_test.py` has each packet's
    time in a queue that drops at its tail."""
    steps = at_random(5, SECONDS + 1)
    (tmp_path / "steps.csv").write_text(
        "t,down_mbit\n" + "".join(f"{t_s:g},{rate_bps / 1e6:.6f}\n" for t_s, rate_bps in steps)
    )
    file = scenario(
        "any",
        lte="down: 300 Mbit/s, up: 10 Mbit/s, rtt: 20 ms, "
        f"queue_down: {{discipline: {discipline}, size: 1 MB}}, "
        "trace: {file: ./steps.csv, rate: recorded}",
    )
    fastest_bps = max(rate_bps for _, rate_bps in steps)
    run_dir = succeeded(
        linklab,
        *("exec", file, "--", "python3", PROBES / "downlink.py", "rmnet0"),
        *(LOAD * fastest_bps, SECONDS, START_S),
    ).run_dir
    applied: Rates = [
        (line["t_s"], line["down_rate_bps"] / 8)
        for line in lines(run_dir / "links.jsonl")
        if line["link"] == "lte"
    ]
    assert len(applied) >= len([t_s for t_s, _ in steps if t_s < SECONDS])
    starts_s = [t_s for t_s, _ in applied]
    carried = [
        0.0,
        *accumulate((after[0] - t_s) * rate for (t_s, rate), after in pairwise(applied)),
    ]

    def integral(t_s: float) -> float:
        number = bisect_right(starts_s, t_s) - 1
        return carried[number] + (t_s - starts_s[number]) * applied[number][1]

    arrivals = json.loads((run_dir / "arrivals.json").read_text())
    begun = integral(arrivals[0][1] / 1e9)
    backlogged = [t_ns / 1e9 for _, t_ns in arrivals if t_ns / 1e9 <= START_S + SECONDS]
    for number, t_s in enumerate(backlogged):
        allowed = integral(t_s) - begun
        tolerance = max(2 * FRAME_BYTES, 0.005 * allowed)
        assert allowed - tolerance <= number * FRAME_BYTES, t_s
        assert (number + 1) * FRAME_BYTES <= allowed + tolerance, t_s
    # The time after the last frame counts as well.
    end = integral(START_S + SECONDS) - begun
    assert len(backlogged) * FRAME_BYTES >= end - max(2 * FRAME_BYTES, 0.005 * end)


def test_every_opportunity_of_a_recording_passes_a_packet(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
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
    arrived = json.loads((done.run_dir / "arrivals.json").read_text())
    for until_ms in range(500, 6001, 100):
        passed = sum(1 for _, t_ns in arrived if t_ns / 1e6 <= until_ms)
        assert abs(passed - sum(1 for ms in times_ms if ms <= until_ms)) <= 1, until_ms
