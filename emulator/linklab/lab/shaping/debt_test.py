from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.lab.shaping.debt import Debt

FRAME = 1514


class Shaper:
    """A backlogged queue that sends by its debt: a frame as soon as nothing is owed any more."""

    def __init__(self, frames: list[int], rate_bps: int) -> None:
        self._frames = frames
        self._debt = Debt()
        self._debt.go_on(rate_bps)
        self._rate_bps = rate_bps
        self._next_ns = 0.0
        self._sizes: list[int] = []
        self.sent_bytes = 0

    def send_until(self, now_ns: int) -> None:
        while self._next_ns <= now_ns:
            size = self._frames[len(self._sizes) % len(self._frames)]
            self._sizes.append(size)
            self.sent_bytes += size
            self._next_ns += size * 8e9 / self._rate_bps

    def change(self, now_ns: int, rate_bps: int) -> None:
        self.send_until(now_ns)
        self._debt.pay(now_ns, self.sent_bytes, is_backlogged=True)
        self._debt.go_on(rate_bps)
        self._rate_bps = rate_bps
        self._next_ns = now_ns + self._debt.bytes * 8e9 / rate_bps


RATES_BPS = st.one_of(
    st.integers(10_000, 300_000_000), st.floats(4, 8.47).map(lambda power: round(10**power))
)
CHANGES = st.lists(st.tuples(RATES_BPS, st.integers(20_000_000, 500_000_000)), min_size=1)
FRAMES = st.lists(st.integers(60, FRAME), min_size=1, max_size=5)


@given(CHANGES, FRAMES)
def test_a_backlog_sends_the_integral_of_its_rates(
    changes: list[tuple[int, int]], frames: list[int]
) -> None:
    """Within a frame, at any time: whatever the rates and the sizes are."""
    shaper = Shaper(frames, changes[0][0])
    now_ns, allowed_bytes = 0, 0.0
    for rate_bps, length_ns in changes:
        shaper.change(now_ns, rate_bps)
        for share in (0.01, 0.5, 0.99, 1.0):
            shaper.send_until(now_ns + round(length_ns * share))
            ahead = shaper.sent_bytes - allowed_bytes - rate_bps / 8e9 * length_ns * share
            assert -1 <= ahead <= FRAME + 1
        now_ns += length_ns
        allowed_bytes += rate_bps / 8e9 * length_ns


@given(st.lists(st.integers(0, 10**9), min_size=2), st.integers(1000, 10**9))
def test_looking_more_often_changes_nothing(times_ns: list[int], rate_bps: int) -> None:
    often, once = Debt(), Debt()
    often.go_on(rate_bps)
    once.go_on(rate_bps)
    ordered = sorted(times_ns)
    sent = rate_bps // 4 + FRAME  # Never paid within the second
    for _, now_ns in pairwise([0, *ordered]):
        often.pay(now_ns, sent, is_backlogged=True)
    once.pay(ordered[-1], sent, is_backlogged=True)
    assert often.bytes == pytest.approx(once.bytes, rel=1e-9)
