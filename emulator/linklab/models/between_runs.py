"""Varies a link's rates from run to run by one factor per run. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from linklab.core import units
from linklab.core.bit_exact_math import normal_quantile
from linklab.core.link_state import LinkState
from linklab.models.layer import Layer, Load
from linklab.models.model import Around, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import ratio
from linklab.schema.rows import Mappings, Row

TRUNCATED_AT: Final = 2.5
"""The distribution is truncated at this many standard deviations, which leaves out 1 run in 80."""

MAX_RELATIVE_SD: Final = 0.36
"""Above this a run's rate could be almost zero. In thesis table 5.12 a link alone has 0.00 to 0.41,
LTE beside Wi-Fi up to 0.52."""

_BEYOND: Final = 0.006209665
"""The normal distribution's share below -`TRUNCATED_AT`."""

_SD: Final = 0.954600
"""The truncated distribution's standard deviation (Johnson, Kotz and Balakrishnan, Continuous
Univariate Distributions 1, 13.10.1)."""


@dataclass(frozen=True, slots=True)
class BetweenRunsSettings:
    """`relative_sd` is the rates' standard deviation between runs divided by their mean.

    The thesis reports it. It is above 0 and at most `MAX_RELATIVE_SD`.
    """

    relative_sd: float


class BetweenRuns(Layer):
    """Multiplies both rates by a factor that is normally distributed around 1 over the runs.

    `quantile` is the run's position among all runs, 0 for the slowest to 1. The distribution is
    truncated at `TRUNCATED_AT` deviations and widened to the stated one.
    """

    def __init__(self, relative_sd: float, quantile: float) -> None:
        deviation = round(normal_quantile(_BEYOND + quantile * (1 - 2 * _BEYOND)), 6)
        self.factor = 1 + relative_sd * deviation / _SD

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        return replace(
            state,
            down_rate_bps=max(1, round(state.down_rate_bps * self.factor)),
            up_rate_bps=max(1, round(state.up_rate_bps * self.factor)),
        )

    def next_s(self) -> float:
        return math.inf


ROW: Final = Row(
    "between_runs",
    "relative_sd",
    ratio(0.0, MAX_RELATIVE_SD),
    "how much rates differ between runs: standard deviation / mean",
    default="0 %",
)


def _read(link: Mapping, around: Around) -> BetweenRunsSettings | None:
    relative_sd = ROW.value.read(link, ROW.key) if link.has(ROW.key) else 0.0
    return BetweenRunsSettings(relative_sd) if relative_sd else None


def _write(settings: BetweenRunsSettings | None) -> Mappings:
    return {ROW.key: ROW.value.write(settings.relative_sd if settings else 0.0)}


MODEL: Final = Model(
    BetweenRunsSettings,
    (ROW,),
    layer=lambda settings, made: BetweenRuns(settings.relative_sd, made.quantile("between runs")),
    place=Stage.RUN,
    summary=lambda settings: [
        (ROW.key, f"±{units.format_ratio(settings.relative_sd)} between runs")
    ],
    reader=_read,
    writer=_write,
)
