"""Tests the judge with a run directory made by hand: 1514 B at 1 Mbit/s take 12.112 ms.

Tests the recursion against fractions of time and by hand.
"""

import json
import random
from fractions import Fraction
from pathlib import Path

from packet_times import Rates, departures_ns, judge

MS = 10**6
S = 10**9
FRAME = 125

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
    (found,) = judge(tmp_path)["a", "down"].packets
    assert found.end_to_end_error_us(10 * MS) == 0


def test_frames_of_others_take_time_and_lost_packets_none(tmp_path: Path) -> None:
    other = way("device", (100, 100, 112.112, 122.112), "digest")
    packet = way("device", (101, 101, 124.224, 134.224), 0)
    lost = way("device", (102, 102, 0, 0), 1)[:2]
    found = judge(run_dir(tmp_path, [*other, *packet, *lost]))["a", "up"]
    assert [one.error_us for one in found.packets] == [0]
    assert found.lost == 1


def test_overtaking_is_an_error(tmp_path: Path) -> None:
    first = way("device", (100, 100, 124.224, 134.224), 0)
    second = way("device", (101, 101, 112.112, 122.112), 1)
    run_dir(tmp_path, sorted([*first, *second], key=lambda frame: frame[2]))
    assert all(one.error_us for one in judge(tmp_path)["a", "up"].packets)


def test_a_departure_is_rounded_up_once() -> None:
    rates = Rates([(0, 3)])
    assert list(departures_ns([(0, 1)] * 3, rates)) == [2_666_666_667, 5_333_333_334, 8 * S]


def test_random_links_carry_what_a_sum_over_seconds_says() -> None:
    """Against fractions of time, frame by frame and rate by rate."""
    dice = random.Random(47)
    for _ in range(50):
        changes = [(t_s * S, dice.choice((0, 700, 1000, 1300, 9000))) for t_s in range(40)]
        changes.append((40 * S, 999))
        arrivals = sorted(dice.randrange(50 * S) for _ in range(60))
        frames = [(t_ns, dice.randrange(1, 300)) for t_ns in arrivals]
        free, expected = Fraction(0), []
        for arrival_ns, size_bytes in frames:
            now, bits = max(free, Fraction(arrival_ns)), Fraction(8 * size_bytes)
            for (_, rate), end in zip(changes, [t for t, _ in changes[1:]] + [10**15], strict=True):
                if bits and end > now:
                    sent = min(bits, (end - now) * rate / S)
                    now, bits = (
                        (now + sent * S / rate if sent == bits else Fraction(end)),
                        bits - sent,
                    )
            free = now
            expected.append(-(-now.numerator // now.denominator))
        assert list(departures_ns(frames, Rates(changes))) == expected
