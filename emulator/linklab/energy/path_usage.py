"""Decides between Wi-Fi and LTE as eMPTCP does, by the rates that they carry (eMPTCP 3). Pure.

The controller forecasts each link's rate. The Energy Information Base tells which links cost least
per byte at these rates. LTE is opened late, so that small downloads do not wake its radio. After
that LTE is resumed or suspended, with a margin that keeps it from switching at every sample.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from linklab.energy.information_base import thresholds
from linklab.energy.model import EnergyModel

KAPPA_BYTES: Final = 1_000_000
"""LTE is opened once a connection has received this much over Wi-Fi (eMPTCP 4.1) …"""

TAU_S: Final = 3.0
"""… or once this time has passed and Wi-Fi's rate has settled (`settling_s`)."""

PHI: Final = 10
"""The number of samples for a first estimate of a link (eMPTCP 3.5)."""

MARGIN: Final = 0.1
"""A rate must pass a threshold by this share before the links in use change (eMPTCP 3.4)."""

UNKNOWN_BPS: Final = 5e6
"""The assumed rate of a link that was never used (eMPTCP 3.2)."""

FIRST_WINDOW_BYTES: Final = 10 * 1460
"""TCP's initial window (RFC 6928)."""

_LEVEL_WEIGHT: Final = 0.8
_TREND_WEIGHT: Final = 0.2
"""The paper does not give them. multilink's eMPTCP has the same values."""


@dataclass(slots=True)
class HoltWinters:
    """Forecasts a rate by double exponential smoothing: level and trend, no seasons."""

    level_bps: float = 0.0
    trend_bps: float = 0.0
    samples: int = 0

    def add(self, sample_bps: float) -> None:
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
        """The forecast of the next sample, at least 0."""
        return max(0.0, self.level_bps + self.trend_bps)


@dataclass(slots=True)
class RateForecast:
    """Forecasts a link's rate from all its samples, old and new ones together (eMPTCP 3.2).

    After a pause the last forecast counts until there are PHI new samples. The first samples come
    from a congestion window that still grows.
    """

    known_bps: float = UNKNOWN_BPS
    _smoothed: HoltWinters = field(default_factory=HoltWinters)
    _new_samples: int = 0

    def add(self, sample_bps: float) -> None:
        """Adds the next sample of a link in use."""
        self._smoothed.add(sample_bps)
        self._new_samples += 1
        if self.settled:
            self.known_bps = self._smoothed.next_bps

    def pause(self) -> None:
        """Waits for new samples, because the link is suspended."""
        self._new_samples = 0

    @property
    def settled(self) -> bool:
        """Whether the link has PHI samples since it was last resumed."""
        return self._new_samples >= PHI


@dataclass(slots=True)
class HighestRate:
    """Estimates a link's rate by the highest level since it was last resumed.

    For LTE beside a slow Wi-Fi. With mainline's scheduler, data received over LTE waits in the
    receiver's buffer for data that is in flight on Wi-Fi, and LTE stops. A low rate then says nothing
    about LTE's capacity. If LTE has become slow, the next use shows it.
    """

    known_bps: float = UNKNOWN_BPS
    recent: HoltWinters = field(default_factory=HoltWinters)
    _most_bps: float = 0.0
    _last_bps: deque[float] = field(default_factory=lambda: deque(maxlen=3))

    def add(self, sample_bps: float) -> None:
        """Adds the sample before this one, if the link carried data in all of the last three.

        Otherwise the sender had no data for the link, or the receiver's buffer was full.
        """
        self._last_bps.append(sample_bps)
        if len(self._last_bps) < 3 or not all(self._last_bps):
            return
        self.recent.add(self._last_bps[1])
        self._most_bps = max(self._most_bps, self.recent.level_bps)
        if self.recent.samples >= PHI:
            self.known_bps = self._most_bps

    def pause(self) -> None:
        """Forgets the samples, because the link is suspended."""
        self.recent = HoltWinters()
        self._most_bps = 0.0
        self._last_bps.clear()


@dataclass(frozen=True, slots=True)
class Observation:
    """One sample of the state of all connections.

    Attributes:
        wifi_bps, lte_bps: rates since the last sample; None if the link has no new sample yet.
        most_bytes: the most that any connection has received over Wi-Fi.
        open_s: age of the oldest connection.
        rtt_s: round trip of Wi-Fi's handshake, which is also the sampling interval.
        is_idle: nothing was sent or received for a round trip.
        has_wifi: the Wi-Fi link is up.
    """

    wifi_bps: float | None
    lte_bps: float | None
    most_bytes: int
    open_s: float
    rtt_s: float
    is_idle: bool
    has_wifi: bool = True


def settling_s(rate_bps: float, rtt_s: float) -> float:
    """Returns the time in which Wi-Fi leaves slow start and gives PHI samples (eMPTCP equation 1).

    There is one sample per round trip.
    """
    carried_bytes = rate_bps / 8 * rtt_s
    return rtt_s * (math.log2((carried_bytes + FIRST_WINDOW_BYTES) / FIRST_WINDOW_BYTES) + PHI)


class PathUsage:
    """eMPTCP's path usage controller, for connections that start over Wi-Fi.

    `uses_lte` is the last decision. `has_opened_lte` says whether LTE was ever used.
    """

    def __init__(self, model: EnergyModel, *, forecasts_lte: bool) -> None:
        """Forecasts LTE's rate as Wi-Fi's, or keeps its highest. Raises KeyError if the model lacks
        Wi-Fi or LTE."""
        self._model = model
        self.wifi = RateForecast()
        self.lte: RateForecast | HighestRate = RateForecast() if forecasts_lte else HighestRate()
        self.uses_lte = self.has_opened_lte = False
        thresholds(model, UNKNOWN_BPS)

    def look(self, now: Observation) -> bool:
        """Takes an observation, and decides whether to use LTE from now on.

        Without Wi-Fi the controller uses LTE at once, even for a new or idle connection. The paper
        leaves that case to Multipath TCP.
        """
        if now.wifi_bps is not None:
            self.wifi.add(now.wifi_bps)
        if now.lte_bps is not None and self.uses_lte:
            self.lte.add(now.lte_bps)
        if not now.has_wifi:
            self.uses_lte = self.has_opened_lte = True
        elif self.uses_lte:
            if self.wifi.known_bps >= self._wifi_only_from_bps() * (1 + MARGIN):
                self.uses_lte = False
                self.lte.pause()
        elif self._may_use(now) and self._is_worth_it():
            self.uses_lte = self.has_opened_lte = True
        return self.uses_lte

    def ended(self) -> None:
        """Suspends LTE because all connections are closed. The estimates stay."""
        self.wifi.pause()
        self.lte.pause()
        self.uses_lte = self.has_opened_lte = False

    def _wifi_only_from_bps(self) -> float:
        """Returns the Wi-Fi rate from which Wi-Fi alone costs least.

        It is 0 if LTE carries nothing, and infinite if Wi-Fi carries nothing either.
        """
        if self.lte.known_bps <= 0:
            return 0.0 if self.wifi.known_bps > 0 else math.inf
        return thresholds(self._model, self.lte.known_bps).wifi_only_from_bps

    def _is_worth_it(self) -> bool:
        """Tells whether both links cost less than Wi-Fi alone. They do if Wi-Fi carries nothing.

        LTE alone is never used. It gains little over both (eMPTCP 3.4).
        """
        rate_bps = self.wifi.known_bps
        return rate_bps <= 0 or rate_bps < self._wifi_only_from_bps() * (1 - MARGIN)

    def _may_use(self, now: Observation) -> bool:
        """Tells whether LTE may be used (eMPTCP 3.5).

        An open subflow may be used at once. A new one has to wait for κ or τ, and is not opened
        for an idle connection.
        """
        if self.has_opened_lte:
            return True
        if now.is_idle or not self.wifi.settled:
            return False
        waited_s = max(TAU_S, settling_s(self.wifi.known_bps, now.rtt_s))
        return now.most_bytes >= KAPPA_BYTES or now.open_s >= waited_s
