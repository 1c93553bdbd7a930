"""A link is not as fast in every run: one factor on its rates per run. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from linklab.core import units
from linklab.core.bit_exact_math import normal_quantile
from linklab.core.link_state import LinkState
from linklab.models.layer import Load
from linklab.models.model import Around, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import ratio
from linklab.schema.rows import Mappings, Row

TRUNCATED_AT: Final = 2.5
"""Standard deviations beyond which no run lies: one in 80 would."""

MAX_RELATIVE_SD: Final = 0.38
"""Above this a run's rate could come near zero. In thesis table 5.12 a link alone has .00 to .41,
LTE beside Wi-Fi up to .52."""

_BEYOND: Final = 0.006209665
"""The normal distribution's share below -`TRUNCATED_AT`."""


@dataclass(frozen=True, slots=True)
class BetweenRunsSettings:
    """`relative_sd` is the rates' standard deviation from run to run over their mean, as the
    thesis reports them: above 0 to `MAX_RELATIVE_SD`."""

    relative_sd: float


class BetweenRuns:
    """Multiplies both rates by a factor that is normally distributed around 1 over the runs.

    `relative_sd` is the standard deviation between runs over the mean, as the thesis reports
    them (0 to `MAX_RELATIVE_SD`, else ValueError). `quantile` is the run's place among all runs,
    0 for the slowest to 1. Nothing lies beyond `TRUNCATED_AT` deviations, so that .955 of the
    standard deviation is left; the mean stays 1.
    """

    wants_load = False
    wants_connections = False

    def __init__(self, relative_sd: float, quantile: float) -> None:
        if not 0 <= relative_sd <= MAX_RELATIVE_SD:
            raise ValueError(
                f"a relative standard deviation of {relative_sd}; allowed: 0 to {MAX_RELATIVE_SD}"
            )
        if not 0 <= quantile <= 1:
            raise ValueError(f"a quantile of {quantile}; allowed: 0 to 1")
        deviation = round(normal_quantile(_BEYOND + quantile * (1 - 2 * _BEYOND)), 6)
        self.factor = 1 + relative_sd * deviation

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        """The state with both rates as they are in this run."""
        return replace(
            state,
            down_rate_bps=max(1, round(state.down_rate_bps * self.factor)),
            up_rate_bps=max(1, round(state.up_rate_bps * self.factor)),
        )

    def next_s(self) -> float:
        """Never: a run has one factor."""
        return math.inf


ROW: Final = Row(
    "between_runs",
    "relative_sd",
    ratio(0.0, MAX_RELATIVE_SD),
    "standard deviation of the rates from run to run over their mean",
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
