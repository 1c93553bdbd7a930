"""Tests the recursion against fractions of time and by hand."""

import random
from fractions import Fraction

import pytest

from bench.lindley import Rates, departures_ns

S = 10**9
FRAME = 125


def left_s(changes: list[tuple[float, int]], *arrivals_s: float) -> list[float]:
    """Returns when frames of 125 bytes leave, in seconds."""
    rates = Rates([(round(t_s * S), rate_bps) for t_s, rate_bps in changes])
    frames = [(round(t_s * S), FRAME) for t_s in arrivals_s]
    return [t_ns / S for t_ns in departures_ns(frames, rates)]


def test_a_departure_is_rounded_up_once() -> None:
    rates = Rates([(0, 3)])
    assert list(departures_ns([(0, 1)] * 3, rates)) == [2_666_666_667, 5_333_333_334, 8 * S]


def test_what_never_leaves_or_comes_too_early_is_an_error() -> None:
    with pytest.raises(ValueError, match="its last rate is 0"):
        left_s([(0, 1000), (0.5, 0)], 0)
    with pytest.raises(ValueError, match="before the first rate"):
        left_s([(1, 1000)], 0.5)


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
