"""Computes when frames leave a link whose rate changes, in exact integers. Pure.

The recursion of Lindley (1952) in work instead of time. The work of a rate until t is its integral
from the first change to t, in bit/s × ns. A frame of B bytes takes 8e9 B of it, beginning at its
arrival or at the end of the frame before, whichever is later:

    end(k) = max(end(k-1), work(arrival(k))) + 8e9 bytes(k)

It leaves at the first moment at which the work has reached its end. Work is a whole number at whole
nanoseconds, so nothing is rounded except that moment. This module shares no code with linklab.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

_WORK_PER_BYTE = 8 * 10**9


class Rates:
    """Holds a rate over time: pairs of time in ns and the rate in bit/s from then on, in the order of
    time. The last rate stays. Raises ValueError for times before the first pair."""

    def __init__(self, changes: Sequence[tuple[int, int]]) -> None:
        self._times = [t_ns for t_ns, _ in changes]
        self._rates = [rate_bps for _, rate_bps in changes]
        passed = ((b - a) * rate for (a, rate), (b, _) in pairwise(changes))
        self._work = list(accumulate(passed, initial=0))

    def work(self, t_ns: int) -> int:
        """Returns the work until a time."""
        number = bisect_right(self._times, t_ns) - 1
        if number < 0:
            raise ValueError(f"{t_ns} ns is before the first rate")
        return self._work[number] + self._rates[number] * (t_ns - self._times[number])

    def time_ns(self, work: int) -> int:
        """Returns the first whole nanosecond at which the work is done. Raises ValueError if it never
        is."""
        number = max(0, bisect_left(self._work, work) - 1)
        left, rate_bps = work - self._work[number], self._rates[number]
        if left and not rate_bps:
            raise ValueError("the link never sends this frame: its last rate is 0")
        return self._times[number] + (-(-left // rate_bps) if left else 0)


def departures_ns(frames: Iterable[tuple[int, int]], rates: Rates) -> Iterator[int]:
    """Yields when each frame leaves, of pairs of arrival in ns and bytes, in the order of service."""
    end = 0
    for arrival_ns, size_bytes in frames:
        end = max(end, rates.work(arrival_ns)) + size_bytes * _WORK_PER_BYTE
        yield rates.time_ns(end)
