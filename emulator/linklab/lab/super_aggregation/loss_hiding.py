"""Which losses a receiver of TCP hides from the sender, and what it acknowledges (super-aggregation,
mirroring-loss-fetching). Pure.

What was lost at random is acknowledged as if it had come, and fetched over another link. What was
lost to a full queue is not: a sender that sees no loss would fill the queue for ever. The two are
told apart by how long packets wait (`Spike`).

Positions are bytes of the connection's stream; a range is its begin and its end. Times are seconds.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

Range = tuple[int, int]

SEGMENTS_BEHIND: Final = 3
"""So many segments come behind what is missing before it is taken for lost and not for late
(RFC 5681 3.2)."""

_FULL, _FREE = 1 / 2, 1 / 3

_PATIENCE: Final = 2
"""How many of its shortest answers the mirror may take for one."""


class Spike:
    """Whether the queue is filling: from when a packet's way has taken longer than the least by half
    of what it can, until by less than a third (Tobe, with the bounds of Cen)."""

    def __init__(self) -> None:
        self._least_s, self._most_s = math.inf, -math.inf
        self._is_full = False

    def saw(self, trip_s: float) -> bool:
        """Learns from a packet, by when it came less when it was sent, on whatever clocks."""
        self._least_s = min(self._least_s, trip_s)
        self._most_s = max(self._most_s, trip_s)
        bound = _FREE if self._is_full else _FULL
        self._is_full = trip_s > self._least_s + bound * (self._most_s - self._least_s)
        return self._is_full


class Pace:
    """Whether who fetches keeps up: nothing waits for much longer than an answer takes at least, so
    that what waits is about what the link brings in a round trip."""

    def __init__(self) -> None:
        self._least_s = math.inf
        self._asked: deque[float] = deque()

    def connected(self, took_s: float) -> None:
        """There is a connection, of which nothing was asked yet."""
        self._least_s = min(self._least_s, took_s)
        self._asked.clear()

    def asked(self, now_s: float) -> None:
        """Something was asked."""
        self._asked.append(now_s)

    def answered(self, now_s: float) -> None:
        """What was asked first has come."""
        self._least_s = min(self._least_s, now_s - self._asked.popleft())

    def keeps_up(self, now_s: float) -> bool:
        """Whether more may be asked."""
        return not self._asked or now_s - self._asked[0] <= _PATIENCE * self._least_s


class Receiver:
    """What has come of a connection's stream, and what is missing with or without the sender's
    knowing. `end` is where the stream ends, which is known once its beginning has been understood;
    before nothing is hidden."""

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
        """What is acknowledged beyond gaps that the sender is to fill, that of the newest segment
        first."""
        return tuple(self._beyond)

    @property
    def is_whole(self) -> bool:
        """Whether all is there, hidden or not."""
        ends = self.end is not None and self.acknowledged >= self.end
        return ends and not self._young and not self._fetched

    def arrived(
        self, begin: int, end: int, trip_s: float, *, keeps_up: bool
    ) -> tuple[bool, list[Range]]:
        """A segment came; `keeps_up` is whether who fetches can take more. Whether the sender has to
        hear of it at once (RFC 5681 4.2), and what is to be fetched now."""
        is_full = self._spike.saw(trip_s)
        self._fill(begin, end)
        self._young = [(missing, behind + (begin >= missing[1])) for missing, behind in self._young]
        covered = begin
        if begin > self._top and self.end is not None and keeps_up and not is_full:
            self._young.append(((self._top, begin), 1))
            covered = self._top
        return self._cover(covered, end), self._ripe()

    def fetched(self, begin: int, end: int) -> None:
        """What was to be fetched has come, or a part."""
        self._fetched = _without(self._fetched, begin, end)

    def _fill(self, begin: int, end: int) -> None:
        """What was missing has come after all."""
        self._fetched = _without(self._fetched, begin, end)
        self._young = [
            (rest, behind)
            for missing, behind in self._young
            for rest in _without([missing], begin, end)
        ]

    def _cover(self, begin: int, end: int) -> bool:
        """Acknowledges a range; whether at once."""
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
        """What is lost for sure: at the stream's end nothing comes behind."""
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
