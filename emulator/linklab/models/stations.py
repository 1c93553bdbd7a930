"""Models other stations on the same Wi-Fi channel, which come and go (eMPTCP 4.4). Pure."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from random import Random
from typing import Final

from linklab.models import draws
from linklab.schema.quantities import count, measure, rate
from linklab.schema.rows import Row, Table


@dataclass(frozen=True, slots=True)
class StationSettings:
    """The number of other stations, and how often they begin and end.

    Stations are off, then busy, each for an exponential time. They send full packets. In eMPTCP 4.4
    λ_off is the rate of *leaving* off. That follows from its results: a larger one makes Wi-Fi
    slower.

    Attributes:
        count: 0 to 100; 2 or 3 in eMPTCP 4.4.
        begins_per_s: rate of leaving off (0.0001 to 100); 0.025 or 0.05 in eMPTCP 4.4.
        ends_per_s: rate of leaving busy (0.0001 to 100); 0.05 in eMPTCP 4.4.
        rate_bps: PHY rate (1 Mbit/s to 10 Gbit/s); None for the client's.
    """

    count: int
    begins_per_s: float = 0.025
    ends_per_s: float = 0.05
    rate_bps: int | None = None


ALONE = StationSettings(0)
"""No other station."""


class Stations:
    """Counts the busy stations. Each is an on-off Markov process.

    Each has its own seed, so a further station does not change the others. At the start a station is
    busy with its long-term probability.
    """

    def __init__(self, settings: StationSettings, random: Random) -> None:
        self._settings = settings
        self._randoms = [Random(random.getrandbits(64)) for _ in range(settings.count)]
        ends, begins = settings.ends_per_s, settings.begins_per_s
        self._busy = [one.random() < begins / (begins + ends) for one in self._randoms]
        self._changes = [(self._lasts_s(one), one) for one in range(settings.count)]
        heapq.heapify(self._changes)

    def _lasts_s(self, station: int) -> float:
        settings = self._settings
        rate = settings.ends_per_s if self._busy[station] else settings.begins_per_s
        return draws.exponential(self._randoms[station], 1 / rate)

    def busy(self, t_s: float) -> int:
        """Returns the number of busy stations from `t_s` on. `t_s` must never decrease."""
        while self._changes and self._changes[0][0] <= t_s:
            changed_s, station = self._changes[0]
            self._busy[station] = not self._busy[station]
            heapq.heapreplace(self._changes, (changed_s + self._lasts_s(station), station))
        return sum(self._busy)

    def next_s(self) -> float:
        """Returns the exact time at which the next station begins or ends; inf without stations."""
        return self._changes[0][0] if self._changes else math.inf


_FREQUENCY: Final = measure("/s", 0.0001, 100.0)

TABLE: Final = Table(
    StationSettings,
    (
        Row("count", "count", count(0, 100), "number of stations", needed=True),
        Row("begins", "begins_per_s", _FREQUENCY, "how often an idle station begins to send"),
        Row("ends", "ends_per_s", _FREQUENCY, "how often a sending station stops"),
        Row(
            "rate",
            "rate_bps",
            rate(1_000_000, 10_000_000_000),
            "PHY rate of the stations; without it the client's",
            unset=None,
        ),
    ),
    about="Other stations on the channel of a radio, which come and go.",
)
