"""Finds bursts of packets, as the MPTCP study defines them (2.3.1). Pure.

A burst ends where no packet follows within `GAP_S`. With fewer packets than `least_packets` it is
none. The study's values differ by app. Its table 2 is a picture, and the text has two of the
numbers of packets: 10 for Messenger, 1000 for YouTube. The other apps have Messenger's. The gap is
an assumption: longer than LTE's radio takes to wake, with a round trip, and shorter than the pauses
of the study's apps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

GAP_S: Final = 0.5

LEAST_PACKETS: Final = 10

PLAYER_LEAST_PACKETS: Final = 1000
"""YouTube's, for every film."""


def least_packets(workload: str) -> int:
    """Returns how many packets a burst of a workload has at least."""
    return PLAYER_LEAST_PACKETS if workload == "player" else LEAST_PACKETS


@dataclass(frozen=True, slots=True)
class Burst:
    """The packets from one time to another, both included."""

    from_ns: int
    to_ns: int
    packets: int


def found(times_ns: Iterable[int], least: int = LEAST_PACKETS) -> Iterator[Burst]:
    """Yields the bursts of `least` packets that came and went at these times, in ascending order."""
    times = sorted(times_ns)
    gap_ns = round(GAP_S * 1e9)
    ends = [n for n, (one, next_) in enumerate(itertools.pairwise(times)) if next_ - one > gap_ns]
    for first, last in itertools.pairwise([-1, *ends, len(times) - 1]):
        if last - first >= least:
            yield Burst(times[first + 1], times[last], last - first)


def grown(
    samples: Sequence[tuple[float, float]], bursts: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Returns how much a counter grew in the steps between samples that touch a burst, and the length
    of these steps in seconds.

    `samples` has times and values, `bursts` beginnings and ends, both ascending. A burst may be
    shorter than a step. What it caused stands in the whole step then.
    """
    growth = length_s = 0.0
    left = list(reversed(bursts))
    for (from_s, low), (to_s, high) in itertools.pairwise(samples):
        while left and left[-1][1] <= from_s:
            left.pop()
        if left and left[-1][0] < to_s:
            growth += high - low
            length_s += to_s - from_s
    return growth, length_s
