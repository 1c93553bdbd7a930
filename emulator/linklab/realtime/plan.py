"""Computes what a scenario's links will be able to carry, if nobody changes them. Pure.

Some models follow the load. The plan is that of links without load.
"""

from __future__ import annotations

from collections import deque

from linklab.links.stack import models
from linklab.scenario import Scenario

STEP_S = 0.5
"""The time between two values."""

AHEAD_S = 90.0
"""How far the plan goes beyond the present."""

_KEPT = 400


class LinkPlan:
    """The downlink's capacity of each link, in bit/s, from the run's start to `AHEAD_S` from now."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._models = models(scenario, seed)
        self._rates: deque[list[int]] = deque(maxlen=_KEPT)
        self._count = 0

    def extend(self, now_s: float) -> None:
        while self._count * STEP_S < now_s + AHEAD_S:
            t_s = self._count * STEP_S
            self._rates.append([model.at(t_s).rate_bps("down") for model in self._models.values()])
            self._count += 1

    def since(self, number: int) -> tuple[int, list[list[int]]]:
        """Returns the values from a number on, and the number of the first one."""
        first = max(number, self._count - len(self._rates))
        kept = list(self._rates)
        return first, kept[len(kept) - (self._count - first) :] if first < self._count else []
