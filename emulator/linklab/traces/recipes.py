"""Defines the traces that ship: their recipes, and the figures that they must have. Pure.

*Driving* is Sprout's model as published. Its figures must be in the range of public driving traces.
These are the Saturator's traces of AT&T and Verizon, and T-Mobile's, which ship with Mahimahi. Our
`statistics` of them: CV 0.56-0.78, autocorrelation 0.82-0.92 after 1 s and 0.09-0.59 after 10 s,
1 gap in 140 s to 36 gaps in 786 s. Other sets have a CV up to 0.85, and autocorrelations down to
0.63 and 0.06.

For walking or resting phones there are no public series. Only the variation of a run's mean is
published: σ of LTE over runs of 15 to 35 s (thesis tables 5.1, 5.3, 5.5, 5.6). The means over 30 s
of these traces must vary as much. The variation from second to second, and its correlation, are
assumptions, chosen to give that result.

Uplinks are a sixth of the downlinks, as in AT&T's driving trace (0.84 of 5.19 Mbit/s).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from linklab.core.paths import PROFILES
from linklab.traces.generator import SPROUT_VOLATILITY, RateProcess, TraceRecipe
from linklab.traces.statistics import of_downlink
from linklab.traces.trace import TraceSample

TRACES: Final = PROFILES / "traces"
"""The directory of the shipped traces."""

RUN_S: Final = 30.0
"""The approximate duration of the thesis' downloads."""

_MBIT = 10**6
_MADE_BY = "made by: python -m linklab.traces, which makes the same bytes again"
_UPLINK_SHARE = 1 / 6


@dataclass(frozen=True, slots=True)
class Target:
    """A figure of the downlink, its allowed range, and the source of the range."""

    figure: str
    low: float
    high: float
    source: str

    def holds(self, value: float) -> bool:
        """Tells whether a value is in the range."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Shipped:
    """A trace in `profiles/traces`."""

    name: str
    title: str
    recipe: TraceRecipe
    targets: tuple[Target, ...]


def _recipe(
    mean_mbit: float,
    *,
    volatility: float = SPROUT_VOLATILITY,
    reversion_per_s: float = 0.0,
    outage_share: float,
) -> TraceRecipe:
    def channel(mean_bps: float) -> RateProcess:
        mean = round(mean_bps)
        return RateProcess(mean, 2 * mean, volatility, reversion_per_s, outage_share)

    down = channel(mean_mbit * _MBIT)
    up = channel(mean_mbit * _MBIT * _UPLINK_SHARE)
    return TraceRecipe(seed=1, duration_s=600, down=down, up=up)


def _volatility(cv: float, reversion_per_s: float) -> float:
    """Returns the volatility that gives an Ornstein-Uhlenbeck rate this CV.

    It is a share of the peak, which is twice the mean.
    """
    return round(cv * math.sqrt(2 * reversion_per_s) / 2, 4)


_PUBLIC = "public driving traces"
_ASSUMED = "assumption"

SHIPPED: Final = (
    Shipped(
        "lte-driving",
        "LTE in a car: all rates from nothing to the peak, and gaps",
        _recipe(20, outage_share=0.06),
        (
            Target("mean_mbit", 15, 25, _ASSUMED),
            Target("cv", 0.56, 0.85, _PUBLIC),
            Target("autocorrelation_1s", 0.63, 0.92, _PUBLIC),
            Target("autocorrelation_10s", 0.06, 0.6, _PUBLIC),
            Target("gaps_per_100s", 100 / 140, 3600 / 786, _PUBLIC),
        ),
    ),
    Shipped(
        "lte-walking",
        "LTE on foot in a city or a large building: fades of some seconds",
        _recipe(60, volatility=_volatility(0.3, 0.25), reversion_per_s=0.25, outage_share=0.05),
        (
            Target("mean_mbit", 54, 66, "thesis table 5.12, LTE of TechnoWLAN moving: 60 Mbit/s"),
            Target("cv_30s", 0.02, 0.18, "thesis table 5.5b, LTE moving: 1.30/67.30-11.68/64.96"),
            Target("cv", 0.2, 0.4, _ASSUMED),
            Target("autocorrelation_1s", 0.7, 0.92, _ASSUMED),
            Target("autocorrelation_10s", -0.1, 0.4, _ASSUMED),
            Target("gaps_per_100s", 0, 0.5, _ASSUMED),
        ),
    ),
    Shipped(
        "lte-static-good",
        "LTE of a phone that lies in good coverage: no gaps",
        _recipe(60, volatility=_volatility(0.15, 0.5), reversion_per_s=0.5, outage_share=0.05),
        (
            Target("mean_mbit", 54, 66, "thesis table 5.12, LTE of High Speed S7: 59 Mbit/s"),
            Target("cv_30s", 0.02, 0.12, "thesis tables 5.3, 5.5, LTE: 1.30/67.30-7.39/65.24"),
            Target("cv", 0.08, 0.2, _ASSUMED),
            Target("autocorrelation_1s", 0.5, 0.9, _ASSUMED),
            Target("autocorrelation_10s", -0.2, 0.2, _ASSUMED),
            Target("gaps_per_100s", 0, 0, _ASSUMED),
        ),
    ),
    Shipped(
        "lte-static-poor",
        "LTE of a phone that lies at the edge of a cell or deep in a building: slow swings",
        _recipe(4, volatility=_volatility(0.45, 0.06), reversion_per_s=0.06, outage_share=0.05),
        (
            Target("mean_mbit", 3, 5, "MPTCP study, table 1: bad LTE is 3-5 Mbit/s"),
            Target("cv_30s", 0.15, 0.36, "thesis table 5.6, LTE indoors: up to 34.53/96.99"),
            Target("cv", 0.3, 0.55, _ASSUMED),
            Target("autocorrelation_1s", 0.85, 0.97, _ASSUMED),
            Target("autocorrelation_10s", 0.2, 0.7, _ASSUMED),
            Target("gaps_per_100s", 0, 1, _ASSUMED),
        ),
    ),
)


def is_generated(header: Iterable[str]) -> bool:
    """Tells from the comments at the start of a trace's file whether linklab generated it."""
    return _MADE_BY in header


def figures(samples: Iterable[TraceSample]) -> dict[str, float]:
    """Computes the downlink's figures for the targets; NaN if undefined."""
    trace = tuple(samples)
    seconds, runs = of_downlink(trace), of_downlink(trace, RUN_S)
    return {
        "mean_mbit": seconds.mean_bps / _MBIT,
        "cv": _or_nan(seconds.cv),
        "autocorrelation_1s": _or_nan(seconds.autocorrelation_1s),
        "autocorrelation_10s": _or_nan(seconds.autocorrelation_10s),
        "cv_30s": _or_nan(runs.cv),
        "gaps_per_100s": 100 * seconds.gaps / seconds.duration_s,
    }


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def comments(shipped: Shipped, samples: Iterable[TraceSample]) -> list[str]:
    """Returns the comments at the start of a shipped trace's file, which holds `samples`."""
    recipe = shipped.recipe
    found = figures(samples)
    return [
        f"{shipped.name}: {shipped.title}",
        "licence: Apache-2.0, as all of linklab; generated, nothing in it is recorded",
        _MADE_BY,
        "model: Poisson packets at a wandering rate, linklab/traces/generator.py",
        f"recipe: seed {recipe.seed}, {recipe.duration_s} s, coupling {recipe.coupling}",
        f"recipe down: {_channel(recipe.down)}",
        f"recipe up: {_channel(recipe.up)}",
        *(
            f"{target.figure}: {found[target.figure]:.3f}, "
            f"wanted {target.low:.3g} to {target.high:.3g} ({target.source})"
            for target in shipped.targets
        ),
    ]


def _channel(channel: RateProcess) -> str:
    return (
        f"mean {channel.mean_bps} bit/s, peak {channel.peak_bps} bit/s, "
        f"volatility {channel.volatility} of the peak per sqrt(s), "
        f"reversion {channel.reversion_per_s}/s, outage share {channel.outage_share}, "
        f"escape {channel.escape_per_s}/s"
    )
