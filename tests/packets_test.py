"""Tests that each packet leaves a link when the rates of `links.jsonl` say, in virtual time."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SEEDS, Linklab, ScenarioFile, succeeded
from linklab.core.link_state import DIRECTIONS
from packet_times import AIM_US, Planned, judge, probe

LENGTH_S = 6.0
RTTS_MS = {"wifi": 20, "lte": 70}


def steps(dice: random.Random, file: Path) -> str:
    """Writes a trace of random rates, each for 5 to 500 ms, and returns the link's key for it."""
    rows, t_s = [], 0.0
    while t_s < LENGTH_S:
        down, up = (10 ** dice.uniform(-2, 2.5) for _ in DIRECTIONS)
        rows.append(f"{t_s:.4f},{down:.4f},{up:.4f}\n")
        t_s += dice.choice((0.005, 0.02, 0.1, 0.5)) * dice.uniform(0.5, 1)
    file.write_text("".join(["t,down_mbit,up_mbit\n", *rows]))
    return f"trace: {{file: {file}, rate: recorded}}"


def bursts(dice: random.Random) -> Iterator[Planned]:
    """Yields bursts of frames of all sizes, whose pauses often empty the queues."""
    for link in range(len(RTTS_MS)):
        for direction in DIRECTIONS:
            t_s = 0.8
            while t_s < LENGTH_S:
                for _ in range(dice.randrange(1, 6)):
                    yield Planned(round(t_s * 1e9), link, direction, dice.randrange(60, 1515))
                    t_s += dice.choice((0, 0.0005, 0.002))
                t_s += dice.expovariate(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_packet_leaves_when_the_rates_say(
    seed: int, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    stalls = "pauses: [{name: stall, per_minute: 60, median: 100 ms, p90: 300 ms}]"
    settings = {
        link: f"down: 1 Mbit/s, up: 1 Mbit/s, rtt: {rtt_ms} ms, queue: 5 MB, "
        + steps(dice, tmp_path / f"{link}.csv")
        for link, rtt_ms in RTTS_MS.items()
    }
    settings["lte"] += f", {stalls}"
    file = scenario("random-rates", **settings)
    plan = sorted(bursts(dice))
    found = judge(succeeded(linklab, "exec", *probe(file, tmp_path, plan)).run_dir)
    assert sum(len(way.packets) for way in found.values()) == len(plan)
    worst_us = {
        way: max(
            (one.end_to_end_error_us(RTTS_MS[way[0]] * 500_000) for one in judged.packets), key=abs
        )
        for way, judged in found.items()
    }
    assert all(abs(error_us) <= AIM_US for error_us in worst_us.values()), worst_us


def test_recording_interval_moves_no_packet(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    dice = random.Random(3)
    plan = sorted(
        Planned(round(dice.uniform(0.8, LENGTH_S) * 1e9), link, direction, 98)
        for link in range(len(RTTS_MS))
        for direction in DIRECTIONS
        for _ in range(1000)
    )
    settings = {
        link: f"down: 1 Mbit/s, up: 1 Mbit/s, rtt: {rtt_ms} ms, "
        + steps(dice, tmp_path / f"{link}.csv")
        for link, rtt_ms in RTTS_MS.items()
    }
    found = []
    for sample_ms in (10, 10_000):
        more = f"sample: {sample_ms} ms\n"
        file = scenario(f"sample-{sample_ms}", **settings, more=more)
        ways = judge(succeeded(linklab, "exec", *probe(file, tmp_path, plan)).run_dir).values()
        found.append(
            [(one.number, one.sent_ns, one.left_ns) for way in ways for one in way.packets]
        )
    assert len(found[0]) == len(plan)
    assert found[0] == found[1]
