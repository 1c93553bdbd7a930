"""Computes how fast counters grew over the last second, from the times at which they were read.
Pure.

Prometheus only knows its scrape times. Queues are sampled every 0.5 s, so its rate over a second
covers 0.5 s to 1.5 s of traffic. This module uses the samples' own times.
"""

from __future__ import annotations

from collections import deque

SPAN_S = 1.0

_SLACK_S = 0.01
"""Samples come some µs late, on the real clock some ms."""


class LastSecond:
    """Holds several growing counters, each 0 at time 0."""

    def __init__(self, sums: int) -> None:
        self._read: deque[tuple[float, tuple[float, ...]]] = deque([(0.0, (0.0,) * sums)])

    def read(self, t_s: float, *sums: float) -> None:
        """Adds the counters' values at `t_s`, which must be later than the last time."""
        self._read.append((t_s, sums))
        while self._read[1][0] <= t_s - SPAN_S + _SLACK_S:
            self._read.popleft()

    def per_second(self) -> tuple[float, ...]:
        """Returns each counter's growth per second over the last second, or since time 0 if that is
        less. Returns 0 before the first values."""
        (since_s, before), (until_s, now) = self._read[0], self._read[-1]
        passed_s = until_s - since_s
        if passed_s <= 0:
            return tuple(0.0 for _ in now)
        return tuple((new - old) / passed_s for new, old in zip(now, before, strict=True))
