"""Defines the values that a regression suite compares: cells, figures, and how much a figure may change. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from linklab.core import units
from linklab.runs import workload_figures
from linklab.runs.figures import COUNT, RUN_FIGURES, SECONDS, Unit, figures_in
from linklab.runs.run_figures import RunFigures
from linklab.runs.workload_figures import WorkloadFigure


class Cell(NamedTuple):
    """One download of a suite: scenario, algorithm and seed."""

    scenario: str
    algorithm: str
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario} {self.algorithm} seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is compared.

    Attributes:
        bound: key in the suite's `bounds`.
        key: key in a baseline.
        digits: number of decimals that a baseline keeps.
        example: an amount for error messages.
    """

    bound: str
    key: str
    title: str
    more_is_worse: bool
    digits: int
    unit: Unit
    example: str

    def form(self, value: float) -> str:
        """Formats a value for people."""
        return self.unit.format(value)


OF_EVERY_RUN: Final = tuple(
    Figure(
        bounds.key, one.key, one.title, one.more_is_worse, bounds.digits, one.unit, bounds.example
    )
    for one, bounds in figures_in(lambda one: one.bounds)
)
"""The figures compared for every run."""

_OF_RUNS: Final = {one.key: one.of for one in RUN_FIGURES}


def _of_workload(key: str, figure: WorkloadFigure) -> Figure:
    """Makes a workload's figure. All times share a bound, and so do all counts."""
    if figure.unit:
        return Figure("workload", key, figure.title, True, 4, SECONDS, "100 ms")
    return Figure("counts", key, figure.title, True, 0, COUNT, "1")


OF_WORKLOADS: Final = tuple(
    _of_workload(key, figure) for key, figure in workload_figures.FIGURES.items()
)
"""The figures compared for runs with a workload."""

FIGURES: Final = (*OF_EVERY_RUN, *OF_WORKLOADS)

Values = dict[str, float | None]
"""A cell's figures by key; None if the client does not report one."""


def values(figures: RunFigures) -> Values:
    """Returns a run's figures as a baseline keeps them."""
    own = figures.workload or {}
    found: Values = {}
    for one in (*OF_EVERY_RUN, *(figure for figure in OF_WORKLOADS if figure.key in own)):
        value = own[one.key] if one.key in own else _OF_RUNS[one.key](figures)
        found[one.key] = None if value is None else round(value, one.digits)
    return found


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest allowed change of a figure: the larger of a share of the baseline's value, and an
    amount in the figure's unit."""

    relative: float = 0.0
    absolute: float = 0.0

    def allowed(self, baseline: float) -> float:
        """Returns the largest allowed difference from a baseline's value."""
        return max(self.relative * abs(baseline), self.absolute)


def parse_bound(figure: Figure, text: str) -> Bound:
    """Reads a bound such as `1 %`, `20 ms` or `1 % or 20 ms`.

    Raises ValueError that says what is allowed.
    """
    relative = absolute = 0.0
    parts = text.split(" or ")
    try:
        for part in parts:
            if part.rstrip().endswith("%"):
                relative = units.parse_ratio(part.strip())
            else:
                absolute = figure.unit.parse(part.strip())
    except ValueError:
        parts = []
    if not parts or len(parts) > 2 or (len(parts) == 2 and not (relative and absolute)):
        raise ValueError(
            f"{text!r} is no bound of the {figure.title}; allowed: a ratio such as '1 %', "
            f"an amount such as {figure.example!r}, or both ('1 % or {figure.example}': the larger)"
        )
    return Bound(relative, absolute)
