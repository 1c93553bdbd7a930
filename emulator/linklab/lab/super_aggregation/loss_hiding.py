"""Decides which losses a TCP receiver hides from the sender, and what it acknowledges
(super-aggregation, mirroring-loss-fetching). Pure.

Randomly lost data is acknowledged as if it had arrived, and fetched over another link. Data lost to
a full queue is not, because a sender that sees no loss would keep the queue full. The packets'
waiting time tells the two apart (`Spike`).

Positions are bytes of the connection's stream. A range is its begin and its end. Times are seconds.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

Range = tuple[int, int]

SEGMENTS_BEHIND: Final = 3
"""The number of later segments after which missing data counts as lost and not as late (RFC 5681
3.2)."""

_FULL, _FREE = 1 / 2, 1 / 3

_PATIENCE: Final = 2
"""How many times its shortest answer time the mirror may take for an answer."""


class Spike:
    """Detects whether the queue is filling. That is from when a packet's trip exceeds the shortest
    by half of the possible range, until it exceeds it by less than a third (Tobe, with the bounds
    of Cen)."""

    def __init__(self) -> None:
        self._least_s, self._most_s = math.inf, -math.inf
        self._is_full = False

    def saw(self, trip_s: float) -> bool:
        """Adds a packet's trip time: its arrival minus its sending time, on any clocks."""
        self._least_s = min(self._least_s, trip_s)
        self._most_s = max(self._most_s, trip_s)
        bound = _FREE if self._is_full else _FULL
        self._is_full = trip_s > self._least_s + bound * (self._most_s - self._least_s)
        return self._is_full


class Pace:
    """Tells whether fetching keeps up. No request may wait much longer than the shortest answer
    time. So the outstanding requests are about what the link delivers in a round trip."""

    def __init__(self) -> None:
        self._least_s = math.inf
        self._asked: deque[float] = deque()

    def connected(self, took_s: float) -> None:
        """Starts a new connection, on which nothing was requested yet."""
        self._least_s = min(self._least_s, took_s)
        self._asked.clear()

    def asked(self, now_s: float) -> None:
        self._asked.append(now_s)

    def answered(self, now_s: float) -> None:
        self._least_s = min(self._least_s, now_s - self._asked.popleft())

    def keeps_up(self, now_s: float) -> bool:
        """Tells whether more may be requested."""
        return not self._asked or now_s - self._asked[0] <= _PATIENCE * self._least_s


class Receiver:
    """Tracks what has arrived of a connection's stream, and what is missing, hidden from the sender
    or not. `end` is the stream's end, known once the head was read. Before that no loss is hidden.
    """

    def __init__(self) -> None:
        self.acknowledged = 0
        self.end: int | None = None
        self._spike = Spike()
        self._beyond: list[Range] = []
        self._top = 0
        self._young: list[tuple[Range, int]] = []
        self._fetched: list[Range] = []

    @property
    def beyond(self) -> tuple[Range, ...]:
        """The acknowledged ranges beyond gaps that the sender has to fill, the one with the newest
        segment first."""
        return tuple(self._beyond)

    @property
    def is_whole(self) -> bool:
        ends = self.end is not None and self.acknowledged >= self.end
        return ends and not self._young and not self._fetched

    def arrived(
        self, begin: int, end: int, trip_s: float, *, keeps_up: bool
    ) -> tuple[bool, list[Range]]:
        """Takes in a segment. `keeps_up` tells whether fetching can take more. Returns whether to
        acknowledge at once (RFC 5681 4.2), and the ranges to fetch now."""
        is_full = self._spike.saw(trip_s)
        self._fill(begin, end)
        self._young = [(missing, behind + (begin >= missing[1])) for missing, behind in self._young]
        covered = begin
        if begin > self._top and self.end is not None and keeps_up and not is_full:
            self._young.append(((self._top, begin), 1))
            covered = self._top
        return self._cover(covered, end), self._ripe()

    def fetched(self, begin: int, end: int) -> None:
        """Takes in a fetched range, or a part of one."""
        self._fetched = _without(self._fetched, begin, end)

    def _fill(self, begin: int, end: int) -> None:
        """Takes in missing data that arrived after all."""
        self._fetched = _without(self._fetched, begin, end)
        self._young = [
            (rest, behind)
            for missing, behind in self._young
            for rest in _without([missing], begin, end)
        ]

    def _cover(self, begin: int, end: int) -> bool:
        """Acknowledges a range. Returns whether to do so at once."""
        is_old = end <= self.acknowledged
        near = [one for one in self._beyond if one[0] <= end and begin <= one[1]]
        begin, end = min([begin, *(one[0] for one in near)]), max([end, *(one[1] for one in near)])
        has_gaps = bool(self._beyond)
        if near:
            self._beyond = [one for one in self._beyond if one not in near]
        if begin <= self.acknowledged:
            self.acknowledged = max(self.acknowledged, end)
        else:
            self._beyond.insert(0, (begin, end))
        self._top = max(self._top, end)
        return is_old or has_gaps or bool(self._beyond)

    def _ripe(self) -> list[Range]:
        """Returns the ranges that count as lost. At the stream's end no segments follow."""
        ends = self.end is not None and self.acknowledged >= self.end
        ripe = [missing for missing, behind in self._young if ends or behind >= SEGMENTS_BEHIND]
        self._young = [one for one in self._young if one[0] not in ripe]
        self._fetched += ripe
        return ripe


def _without(ranges: list[Range], begin: int, end: int) -> list[Range]:
    return [
        rest
        for first, last in ranges
        for rest in (
            ((first, last),)
            if last <= begin or end <= first
            else ((first, min(begin, last)), (max(end, first), last))
        )
        if rest[0] < rest[1]
    ]
