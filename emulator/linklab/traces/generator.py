"""Generates traces from a seed: random packets at a randomly varying rate. Pure.

The model is Sprout's model of cellular links (Winstein et al., NSDI 2013). Within ticks of 20 ms
packets are Poisson distributed. The rate does a Brownian motion. A rate of zero is an outage, which
ends with a probability of 1 per second. Sprout's volatility is 200 packets/s per √s for rates up to
1000 packets/s. Here it is a share of the highest rate, 0.2 per √s.

Sprout only forecasts, but a trace must stay stationary. So the model has three additions:

- The rate is reflected at its highest value, where Sprout's grid of rates ends. It then visits all
  rates equally (coefficient of variation 1/√3 = 0.58), like driving phones.
- For a standing or walking phone, `reversion_per_s` θ pulls the rate back to its mean
  (Ornstein-Uhlenbeck). The coefficient of variation is σ/(mean·√2θ), and the autocorrelation
  exp(−θτ) after τ seconds. θ = 0 is Brownian.
- Only a share of the zeros are outages (`outage_share`). Otherwise the link would be dark for a
  third of the time.

Random numbers come only from `random.random`, whose series Python guarantees. This module turns them
into normal and Poisson numbers. So a seed gives the same bytes with any Python on any machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from linklab.core.bit_exact_math import exp, expm1, normal_quantile
from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import MAX_RATE_BPS
from linklab.traces.trace import MAX_LENGTH_NS, MAX_LENGTH_S, NS_PER_S, TraceSample

TICK_S: Final = 0.02
SPROUT_VOLATILITY: Final = 0.2
SPROUT_ESCAPE_PER_S: Final = 1.0

_TICKS_PER_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class RateProcess:
    """The rate of one direction of a link.

    Attributes:
        mean_bps: the start of the rate, and the value that it reverts to.
        peak_bps: where the rate is reflected; at least the mean. A Brownian rate's mean is about
            half the peak.
        volatility: share of the peak per √s.
        reversion_per_s: 0 or more.
        outage_share: 0 to 1.
        escape_per_s: probability per second that an outage ends; above 0.
    """

    mean_bps: int
    peak_bps: int
    volatility: float = SPROUT_VOLATILITY
    reversion_per_s: float = 0.0
    outage_share: float = 0.0
    escape_per_s: float = SPROUT_ESCAPE_PER_S


@dataclass(frozen=True, slots=True)
class TraceRecipe:
    """All parameters of a generated trace.

    `coupling` (0 to 1) is the correlation of the uplink's steps with the downlink's. Outages of the
    downlink also hit the uplink.
    """

    seed: int
    duration_s: int
    down: RateProcess
    up: RateProcess
    coupling: float = 0.5


def generate(recipe: TraceRecipe) -> Iterator[TraceSample]:
    """Yields a recipe's samples of 100 ms. Raises ValueError for an invalid recipe."""
    _check(recipe)
    randomness = random.Random(recipe.seed)
    down, up = _Wandering(recipe.down, randomness), _Wandering(recipe.up, randomness)
    apart = math.sqrt(1 - recipe.coupling * recipe.coupling)
    sample_s = TICK_S * _TICKS_PER_SAMPLE
    for _ in range(round(recipe.duration_s / sample_s)):
        down_packets = up_packets = 0
        for _ in range(_TICKS_PER_SAMPLE):
            down_packets += down.packets()
            up_packets += 0 if down.is_out else up.packets()
            step = _normal(randomness)
            down.move(step)
            up.move(recipe.coupling * step + apart * _normal(randomness))
        yield TraceSample(
            length_ns=round(sample_s * NS_PER_S),
            down_bps=round(down_packets * FRAME_BYTES * 8 / sample_s),
            up_bps=round(up_packets * FRAME_BYTES * 8 / sample_s),
        )


def _check(recipe: TraceRecipe) -> None:
    for channel in (recipe.down, recipe.up):
        if not 0 < channel.mean_bps <= channel.peak_bps <= MAX_RATE_BPS:
            raise ValueError(
                f"a mean of {channel.mean_bps} bit/s below a peak of {channel.peak_bps} bit/s; "
                f"allowed: 0 < mean <= peak <= {MAX_RATE_BPS}"
            )
        if channel.volatility < 0 or channel.reversion_per_s < 0 or channel.escape_per_s <= 0:
            raise ValueError(
                "volatility, reversion and escape are negative; "
                "allowed: 0 or more, escape more than 0"
            )
        if not 0 <= channel.outage_share <= 1:
            raise ValueError(f"an outage share of {channel.outage_share}; allowed: 0 to 1")
    if not 0 <= recipe.coupling <= 1:
        raise ValueError(f"a coupling of {recipe.coupling}; allowed: 0 to 1")
    if not 0 < recipe.duration_s * NS_PER_S <= MAX_LENGTH_NS:
        raise ValueError(f"a duration of {recipe.duration_s} s; allowed: 1 s to {MAX_LENGTH_S} s")


class _Wandering:
    """The rate of one direction, tick by tick, in packets per second."""

    def __init__(self, channel: RateProcess, randomness: random.Random) -> None:
        bits = FRAME_BYTES * 8
        self._mean = channel.mean_bps / bits
        self._peak = channel.peak_bps / bits
        self._step = channel.volatility * self._peak * math.sqrt(TICK_S)
        self._pull = -expm1(-channel.reversion_per_s * TICK_S)
        self._outage_share = channel.outage_share
        self._escape = -expm1(-channel.escape_per_s * TICK_S)
        self._randomness = randomness
        self._rate = self._mean
        self.is_out = False

    def packets(self) -> int:
        """Draws the number of packets in this tick."""
        return 0 if self.is_out else _poisson(self._rate * TICK_S, self._randomness)

    def move(self, normal: float) -> None:
        """Goes to the next tick, by a step from the standard normal distribution."""
        if self.is_out:
            self.is_out = self._randomness.random() >= self._escape
            self._rate = 0.0 if self.is_out else abs(self._step * normal)
            return
        rate = self._rate + self._pull * (self._mean - self._rate) + self._step * normal
        if rate > self._peak:
            rate = 2 * self._peak - rate
        if rate <= 0 and self._outage_share:
            self.is_out = self._randomness.random() < self._outage_share
        self._rate = 0.0 if self.is_out else min(abs(rate), self._peak)


def _normal(randomness: random.Random) -> float:
    return normal_quantile(max(randomness.random(), 1 / 2**53))


def _poisson(mean: float, randomness: random.Random) -> int:
    """Draws a Poisson number by inversion: the first count whose cumulative probability exceeds a
    uniform number.

    A large mean is divided into parts, each Poisson, so that exp(−mean) does not underflow.
    """
    count = 0
    while mean > 0:
        part = min(mean, 500.0)
        mean -= part
        uniform = randomness.random()
        probability = exp(-part)
        cumulated, drawn = probability, 0
        while uniform >= cumulated and probability > 0:
            drawn += 1
            probability *= part / drawn
            cumulated += probability
        count += drawn
    return count
