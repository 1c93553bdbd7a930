"""Tests the judge with a run directory made by hand: 1514 B at 1 Mbit/s take 12.112 ms."""

import json
import random
from pathlib import Path

from bench.packets import judge, poisson

MS = 10**6

Frame = tuple[str, bool, float, int, int | str]


def run_dir(path: Path, frames: list[Frame]) -> Path:
    """Writes a run of one link of 1 Mbit/s, which holds its uplink from 0.5 to 0.7 s."""
    state = {"link": "a", "up": True, "blackout": False, "hold_down": False}
    rates = {"down_rate_bps": 1_000_000, "up_rate_bps": 1_000_000}
    held = ((0, False), (0.5, True), (0.7, False))
    states = [{**state, **rates, "t_s": t_s, "hold_up": hold} for t_s, hold in held]
    seen = [[0, place, left, round(t * MS), size, key] for place, left, t, size, key in frames]
    for name, lines in (("links", states), ("packets", seen)):
        (path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def way(sent: str, times_ms: tuple[float, float, float, float], key: int | str) -> list[Frame]:
    """Returns a frame at the four places, from the client if `sent` is `device`."""
    path = ("device", "near", "far", "end")[:: 1 if sent == "device" else -1]
    left = (True, False, True, False)
    return [(a, b, t, 1514, key) for a, b, t in zip(path, left, times_ms, strict=True)]


def test_an_error_is_what_the_recursion_does_not_say(tmp_path: Path) -> None:
    right = way("device", (100, 100, 112.112, 122.112), 0)
    late = way("device", (100, 100, 124.3, 134.3), 1)
    held = way("device", (495, 495, 707.112, 717.112), 2)
    down = way("end", (100, 110, 122.112, 122.112), 3)
    up = judge(run_dir(tmp_path, [*right, *late, *held, *down]))["a", "up"]
    assert [one.error_us for one in up.packets] == [0, 76, 0]
    assert [one.end_to_end_error_us(10 * MS) for one in up.packets] == [0, 76, 0]
    assert up.packets[1].waits_ms == (24.3, 24.224)
    (found,) = judge(tmp_path)["a", "down"].packets
    assert found.end_to_end_error_us(10 * MS) == 0


def test_frames_of_others_take_time_and_lost_packets_none(tmp_path: Path) -> None:
    other = way("device", (100, 100, 112.112, 122.112), "digest")
    packet = way("device", (101, 101, 124.224, 134.224), 0)
    lost = way("device", (102, 102, 0, 0), 1)[:2]
    found = judge(run_dir(tmp_path, [*other, *packet, *lost]))["a", "up"]
    assert [one.error_us for one in found.packets] == [0]
    assert found.lost == 1


def test_overtaking_is_an_error_unless_the_queue_may_do_it(tmp_path: Path) -> None:
    first = way("device", (100, 100, 124.224, 134.224), 0)
    second = way("device", (101, 101, 112.112, 122.112), 1)
    run_dir(tmp_path, sorted([*first, *second], key=lambda frame: frame[2]))
    assert all(one.error_us for one in judge(tmp_path)["a", "up"].packets)
    # Only the order is the queue's: a frame cannot begin before it came.
    by_departure = judge(tmp_path, is_fifo=False)["a", "up"].packets
    assert [one.number for one in by_departure] == [1, 0]
    assert [one.error_us for one in by_departure] == [-1000, -1000]


def test_packets_surround_changes_of_the_rate() -> None:
    times_s = list(poisson(random.Random(1), 300, 1e5, 1.0, 3.3))
    assert times_s == sorted(times_s)
    assert {round(t_s) for t_s in times_s} >= {5, 6, 7}
    assert all(abs(t_s - round(t_s)) < 0.00051 for t_s in times_s)
    assert min(poisson(random.Random(1), 300, 1e3, 0.02, 3.3)) > 3.3
