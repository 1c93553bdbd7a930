"""Which of Wi-Fi and LTE to use, as eMPTCP decides it from what they carry (eMPTCP 3). Pure.

A predictor of each link's rate asks the Energy Information Base which links cost least per byte.
LTE is opened late, so that small downloads do not wake its radio; from then on it is used or
suspended, with a margin, so that it is not switched at every sample.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from linklab.energy.information_base import thresholds
from linklab.energy.model import EnergyModel

KAPPA_BYTES: Final = 1_000_000
"""LTE is not opened before a connection has received so much over Wi-Fi (eMPTCP 4.1) …"""

TAU_S: Final = 3.0
"""… or so much time has passed, if Wi-Fi's rate has settled by then (`settling_s`)."""

PHI: Final = 10
"""So many samples make an estimate of a link that has just begun to carry (eMPTCP 3.5)."""

MARGIN: Final = 0.1
"""By how much a rate must be beyond a threshold to change what is used (eMPTCP 3.4)."""

UNKNOWN_BPS: Final = 5e6
"""What a link is taken for that was never used (eMPTCP 3.2)."""

FIRST_WINDOW_BYTES: Final = 10 * 1460
"""What TCP sends in its first round trip (RFC 6928)."""

_LEVEL_WEIGHT: Final = 0.8
_TREND_WEIGHT: Final = 0.2
"""Not published; multilink's eMPTCP has the same."""


@dataclass(slots=True)
class HoltWinters:
    """A forecast of a rate from samples: a level and a trend, both smoothed, without seasons."""

    level_bps: float = 0.0
    trend_bps: float = 0.0
    samples: int = 0

    def add(self, sample_bps: float) -> None:
        """Takes the next sample."""
        before = self.level_bps
        if self.samples == 0:
            self.level_bps = sample_bps
        else:
            expected = before + self.trend_bps
            self.level_bps = _LEVEL_WEIGHT * sample_bps + (1 - _LEVEL_WEIGHT) * expected
            step = self.level_bps - before
            self.trend_bps = _TREND_WEIGHT * step + (1 - _TREND_WEIGHT) * self.trend_bps
        self.samples += 1

    @property
    def next_bps(self) -> float:
        """What to expect, not below 0."""
        return max(0.0, self.level_bps + self.trend_bps)


@dataclass(slots=True)
class RateForecast:
    """A link's rate to expect: the last forecast, or with `keeps_most` the highest level since it was
    taken into use. After a pause the old estimate counts until there are PHI samples anew: the first ones
    are of a window that still grows."""

    keeps_most: bool = False
    known_bps: float = UNKNOWN_BPS
    recent: HoltWinters = field(default_factory=HoltWinters)
    _most_bps: float = 0.0

    def add(self, sample_bps: float) -> None:
        """Takes the next sample of a link in use."""
        self.recent.add(sample_bps)
        self._most_bps = max(self._most_bps, self.recent.level_bps)
        if self.settled:
            self.known_bps = self._most_bps if self.keeps_most else self.recent.next_bps

    def pause(self) -> None:
        """The link is not used for a while."""
        self.recent = HoltWinters()
        self._most_bps = 0.0

    @property
    def settled(self) -> bool:
        """Whether there are samples enough since the link was last taken into use."""
        return self.recent.samples >= PHI


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look at the connections has shown. `wifi_bps` and `lte_bps` are the rates since the last
    look, None of a link of which it is not time yet; `has_wifi` is whether Wi-Fi is there at all; `most_bytes` is what the connection has received over Wi-Fi
    that received most, `open_s` how long the oldest one is open; `rtt_s` the round trip of Wi-Fi's
    handshake, which is how far samples are apart; `is_idle` that nothing came or went for a round trip."""

    wifi_bps: float | None
    lte_bps: float | None
    most_bytes: int
    open_s: float
    rtt_s: float
    is_idle: bool
    has_wifi: bool = True


def settling_s(rate_bps: float, rtt_s: float) -> float:
    """How long Wi-Fi takes to leave slow start and give PHI samples, one per round trip (eMPTCP
    equation 1)."""
    carried_bytes = rate_bps / 8 * rtt_s
    return rtt_s * (math.log2((carried_bytes + FIRST_WINDOW_BYTES) / FIRST_WINDOW_BYTES) + PHI)


class PathUsage:
    """The path usage controller of eMPTCP for connections that begin over Wi-Fi. `uses_lte` says
    what it has decided, `has_opened_lte` whether it ever has."""

    def __init__(self, model: EnergyModel) -> None:
        """KeyError where the model does not know Wi-Fi or LTE."""
        self._model = model
        self.wifi, self.lte = RateForecast(), RateForecast(keeps_most=True)
        self.uses_lte = self.has_opened_lte = False
        self._lte_samples: deque[float] = deque(maxlen=3)
        thresholds(model, UNKNOWN_BPS)

    def look(self, seen: Observation) -> bool:
        """Whether LTE is to be used from now on. Without Wi-Fi there is nothing else, however young or
        silent the connection is: the paper leaves that to Multipath TCP, whose LTE subflow is there."""
        if seen.wifi_bps is not None:
            self.wifi.add(seen.wifi_bps)
        if seen.lte_bps is not None and self.uses_lte:
            self._add_lte(seen.lte_bps)
        if not seen.has_wifi:
            self.uses_lte = self.has_opened_lte = True
        elif self.uses_lte:
            if self.wifi.known_bps >= self._wifi_only_from_bps() * (1 + MARGIN):
                self.uses_lte = False
                self._pause_lte()
        elif self._may_use(seen) and self._is_worth_it():
            self.uses_lte = self.has_opened_lte = True
        return self.uses_lte

    def _add_lte(self, sample_bps: float) -> None:
        """Takes a sample of LTE if it carried something before and after it too. Else the sender had
        nothing for it, or no room at the receiver: that says nothing of what it could carry. Nor
        does a time in which it gave it little, which beside a slow Wi-Fi lasts for seconds: what
        comes over LTE waits for what is on its way over Wi-Fi, until the receiver's buffer is full.
        Hence the highest level. An LTE that has become slow is found out at its next use."""
        self._lte_samples.append(sample_bps)
        if len(self._lte_samples) == self._lte_samples.maxlen and all(self._lte_samples):
            self.lte.add(self._lte_samples[1])

    def _pause_lte(self) -> None:
        self.lte.pause()
        self._lte_samples.clear()

    def ended(self) -> None:
        """All connections are closed: what is known of the links stays, LTE is asleep again."""
        self.wifi.pause()
        self._pause_lte()
        self.uses_lte = self.has_opened_lte = False

    def _wifi_only_from_bps(self) -> float:
        """The rate of Wi-Fi from which on it costs least alone: any, where LTE carries nothing; none,
        where Wi-Fi does not either."""
        if self.lte.known_bps <= 0:
            return 0.0 if self.wifi.known_bps > 0 else math.inf
        return thresholds(self._model, self.lte.known_bps).wifi_only_from_bps

    def _is_worth_it(self) -> bool:
        """Wi-Fi is slow enough for both to cost less; a Wi-Fi that brings nothing always is. LTE
        alone is not used: it gains little over both (eMPTCP 3.4)."""
        rate_bps = self.wifi.known_bps
        return rate_bps <= 0 or rate_bps < self._wifi_only_from_bps() * (1 - MARGIN)

    def _may_use(self, seen: Observation) -> bool:
        """A subflow that is there may be used at once, a new one not before κ or τ, nor for a
        connection that is idle (eMPTCP 3.5)."""
        if self.has_opened_lte:
            return True
        if seen.is_idle or not self.wifi.settled:
            return False
        waited_s = max(TAU_S, settling_s(self.wifi.known_bps, seen.rtt_s))
        return seen.most_bytes >= KAPPA_BYTES or seen.open_s >= waited_s
