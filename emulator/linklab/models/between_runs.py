"""A link is not as fast in every run: one factor on its rates per run. Pure."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from linklab.models.layer import LinkState, Load

TRUNCATED_AT = 2.5
"""Standard deviations beyond which no run lies: one in 80 would."""

MAX_RELATIVE_SD = 0.38
"""Above this a run's rate could come near zero. Thesis tables 5.1 to 5.6 have .00 to .33."""


class BetweenRuns:
    """Multiplies both rates by a factor that is normally distributed around 1 over the runs.

    `relative_sd` is the standard deviation between runs over the mean, as the thesis reports
    them (0 to `MAX_RELATIVE_SD`, else ValueError). What lies beyond `TRUNCATED_AT` of them is
    drawn again, after which .955 of the standard deviation is left; the mean stays 1.
    """

    wants_load = False
    wants_connections = False

    def __init__(self, relative_sd: float, random: Random) -> None:
        if not 0 <= relative_sd <= MAX_RELATIVE_SD:
            raise ValueError(
                f"a relative standard deviation of {relative_sd}; allowed: 0 to {MAX_RELATIVE_SD}"
            )
        deviation = random.normalvariate()
        while abs(deviation) > TRUNCATED_AT:
            deviation = random.normalvariate()
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
