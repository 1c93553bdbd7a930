"""How fast sums grow: over the last second, from the times at which they were read. Pure.

Prometheus knows when it asked, not when a counter was read: with queues that are sampled every half
second, its rate of a second holds from 0.5 to 1.5 s of traffic. Here both ends are the samples' own.
"""

from __future__ import annotations

from collections import deque

SPAN_S = 1.0

_SLACK_S = 0.01
"""Samples come some µs late, on a real clock some ms."""


class LastSecond:
    """Some sums that grow, each from 0 at time 0."""

    def __init__(self, sums: int) -> None:
        self._read: deque[tuple[float, tuple[float, ...]]] = deque([(0.0, (0.0,) * sums)])

    def read(self, t_s: float, *sums: float) -> None:
        """What the sums are at `t_s`, which is later than the time before."""
        self._read.append((t_s, sums))
        while self._read[1][0] <= t_s - SPAN_S + _SLACK_S:
            self._read.popleft()

    def per_second(self) -> tuple[float, ...]:
        """By how much each has grown in a second: in the last whole one, or since the beginning.
        0 before anything was read."""
        (since_s, before), (until_s, now) = self._read[0], self._read[-1]
        passed_s = until_s - since_s
        if passed_s <= 0:
            return tuple(0.0 for _ in now)
        return tuple((new - old) / passed_s for new, old in zip(now, before, strict=True))
