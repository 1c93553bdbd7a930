"""Lets the rates of a link wander between their percentiles, as drives measure them. Pure.

Measurements state a rate by percentiles (CoNEXT 2025, SIGCOMM 2021). A position from 0 to 1 wanders as
a random walk that is reflected at both ends. So it is uniform in the long run, and the rate has the
stated percentiles. Between the percentiles the logarithm of the rate is linear in the position, and
beyond them it goes on with the same slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from linklab.core import units
from linklab.core.bit_exact_math import exp, log
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.keys import RATE
from linklab.models.layer import Layer, Load
from linklab.models.model import Around, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import duration
from linklab.schema.rows import Row, Table

_LOW, _MEDIAN, _HIGH = 0.1, 0.5, 0.9
"""The positions of the stated percentiles."""


@dataclass(frozen=True, slots=True)
class SpreadSettings:
    """The percentiles of the rates. The medians are the link's own rates.

    Attributes:
        down_p10_bps, down_p90_bps, up_p10_bps, up_p90_bps: None keeps that side at the median.
        memory_s: time in which the correlation of the position falls to 1/e (0.1 s to 600 s). Public
            driving traces have autocorrelations of 0.82 to 0.92 after 1 s and 0.09 to 0.59 after
            10 s (`profiles/traces`), which 8 s gives.
        step_s: how often the rates change (20 ms to 60 s).
    """

    down_p10_bps: int | None = None
    down_p90_bps: int | None = None
    up_p10_bps: int | None = None
    up_p90_bps: int | None = None
    memory_s: float = 8.0
    step_s: float = 1.0


@dataclass(frozen=True, slots=True)
class SpreadOfLink:
    """The percentiles with the medians that they belong to."""

    settings: SpreadSettings
    down_bps: int
    up_bps: int


class RateSpread(Layer):
    """Multiplies both rates by factors that follow one position, as both depend on the radio."""

    def __init__(self, spread: SpreadOfLink, random: Random) -> None:
        settings = spread.settings
        self._random = random
        self._step_s = settings.step_s
        # The slowest cosine of the walk decays by exp(-π²σ²/2) in a step.
        self._deviation = math.sqrt(2 * settings.step_s / settings.memory_s) / math.pi
        self._down = _factor(spread.down_bps, settings.down_p10_bps, settings.down_p90_bps)
        self._up = _factor(spread.up_bps, settings.up_p10_bps, settings.up_p90_bps)
        self._number = 0
        self._position = random.random()

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        number = math.floor(t_s / self._step_s + 1e-6)
        while self._number < number:
            self._number += 1
            moved = self._position + self._deviation * draws.normal(self._random)
            self._position = _reflected(moved)
        return state.scaled(self._down(self._position), self._up(self._position))

    def next_s(self) -> float:
        return (self._number + 1) * self._step_s


def _factor(median: int, low: int | None, high: int | None) -> Callable[[float], float]:
    """Returns the function from a position to the rate, as a multiple of the median."""
    below = 0.0 if low is None else log(median / low) / (_MEDIAN - _LOW)
    above = 0.0 if high is None else log(high / median) / (_HIGH - _MEDIAN)

    def factor(position: float) -> float:
        slope = below if position < _MEDIAN else above
        return exp((position - _MEDIAN) * slope)

    return factor


def _reflected(position: float) -> float:
    """Folds a position back into 0 to 1."""
    folded = abs(position) % 2
    return 2 - folded if folded > 1 else folded


TABLE: Final = Table(
    SpreadSettings,
    (
        Row("down_p10", "down_p10_bps", RATE, "tenth percentile of the downlink", unset=None),
        Row("down_p90", "down_p90_bps", RATE, "90th percentile of the downlink", unset=None),
        Row("up_p10", "up_p10_bps", RATE, "tenth percentile of the uplink", unset=None),
        Row("up_p90", "up_p90_bps", RATE, "90th percentile of the uplink", unset=None),
        Row("memory", "memory_s", duration(0.1, 600.0), "how long the rates stay similar"),
        Row("step", "step_s", duration(0.02, 60.0), "how often the rates change"),
    ),
    about="The rates wander at random. Their medians are the link's `down` and `up`.",
)

_ROW: Final = Row("spread", "settings", TABLE, "rates that wander between percentiles")


def _read(link: Mapping, around: Around) -> SpreadOfLink | None:
    if not link.has(_ROW.key):
        return None
    mapping = link.sub(_ROW.key, TABLE.keys)
    settings = TABLE.of(mapping)
    for key, percentile, median, is_low in (
        ("down_p10", settings.down_p10_bps, around.down_rate_bps, True),
        ("down_p90", settings.down_p90_bps, around.down_rate_bps, False),
        ("up_p10", settings.up_p10_bps, around.up_rate_bps, True),
        ("up_p90", settings.up_p90_bps, around.up_rate_bps, False),
    ):
        if percentile is not None and (percentile > median if is_low else percentile < median):
            most = "most" if is_low else "least"
            mapping.fail(
                key,
                f"{units.format_rate(percentile)} is on the wrong side of the median; "
                f"allowed: at {most} {units.format_rate(median)}",
            )
    return SpreadOfLink(settings, around.down_rate_bps, around.up_rate_bps)


MODEL: Final = Model(
    SpreadOfLink,
    (_ROW,),
    layer=lambda spread, made: RateSpread(spread, made.random("spread")),
    place=Stage.CAPACITY,
    summary=lambda spread: [(_ROW.key, "rates that wander")],
    reader=_read,
    writer=lambda spread: {} if spread is None else {_ROW.key: TABLE.write(spread.settings)},
)
