"""Defines the metrics of a regression suite's verdict on a run. Pure."""

from __future__ import annotations

import math

from linklab.metrics.metric import Metric, Readings, declared
from linklab.runs.beside_baseline import BesideBaseline

Verdict = BesideBaseline | None
"""None if the run belongs to no suite."""


def _moved(verdict: Verdict) -> Readings:
    if verdict is not None:
        for one in verdict.movements:
            yield (verdict.suite, one.figure), math.inf if one.bounds is None else one.bounds


def _changed(verdict: Verdict) -> Readings:
    if verdict is not None:
        for one in verdict.movements:
            if one.baseline and one.now is not None:
                yield (verdict.suite, one.figure), one.now / one.baseline - 1


MOVED = Metric[Verdict](
    "linklab_regression_moved_ratio",
    "How far a figure moved from its baseline, by the suite's bound: above 1 is worse, below -1 "
    "better.",
    _moved,
    ("suite", "figure"),
)

CHANGED = Metric[Verdict](
    "linklab_regression_changed_ratio",
    "A figure by its baseline, less 1.",
    _changed,
    ("suite", "figure"),
)

METRICS = declared(globals())
