"""What a regression suite compares: cells, their figures, and how far one may move. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from linklab.core import units
from linklab.runs import workload_figures
from linklab.runs.run_figures import RunFigures
from linklab.runs.workload_figures import WorkloadFigure


class Cell(NamedTuple):
    """One download of a suite: who, where, with which seed."""

    scenario: str
    algorithm: str
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario} {self.algorithm} seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run: its key in a suite's bounds and in a baseline, which way is worse, and
    how many digits of it a baseline keeps."""

    bound: str
    key: str
    title: str
    more_is_worse: bool
    digits: int
    parse: Callable[[str], float]
    form: Callable[[float], str]
    example: str


def _seconds(value: float) -> str:
    return f"{value:.3f} s"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.2f} MB"


OF_EVERY_RUN: Final = (
    Figure(
        "download", "download_s", "download time", True, 4, units.parse_duration, _seconds, "20 ms"
    ),
    Figure(
        "efficiency",
        "efficiency",
        "efficiency",
        False,
        4,
        units.parse_number,
        "{:.3f}".format,
        "0.02",
    ),
    Figure(
        "link_delta", "link_delta_s", "link Δ", True, 4, units.parse_duration, _seconds, "200 ms"
    ),
    Figure(
        "wasted", "wasted_bytes", "bytes wasted", True, 0, units.parse_size, _megabytes, "300 kB"
    ),
    Figure("stalls", "stalled_s", "stalls", True, 4, units.parse_duration, _seconds, "600 ms"),
)
"""What is compared of every run, the attributes of `RunFigures` by `key`."""


def _of_workload(key: str, figure: WorkloadFigure) -> Figure:
    """Times of a workload share a bound, and so do counts."""
    if figure.unit:
        return Figure(
            "workload", key, figure.title, True, 4, units.parse_duration, _seconds, "100 ms"
        )
    return Figure("counts", key, figure.title, True, 0, units.parse_number, "{:.0f}".format, "1")


OF_WORKLOADS: Final = tuple(
    _of_workload(key, figure) for key, figure in workload_figures.FIGURES.items()
)
"""What is compared of runs with a workload of their own."""

FIGURES: Final = (*OF_EVERY_RUN, *OF_WORKLOADS)

Values = dict[str, float | None]
"""A cell's figures by key; None is what its program does not tell."""


def values(figures: RunFigures) -> Values:
    """A run's figures as a baseline keeps them."""
    own = figures.workload or {}
    found: Values = {}
    for one in (*OF_EVERY_RUN, *(figure for figure in OF_WORKLOADS if figure.key in own)):
        value = own[one.key] if one.key in own else getattr(figures, one.key)
        found[one.key] = None if value is None else round(value, one.digits)
    return found


@dataclass(frozen=True, slots=True)
class Bound:
    """By how much a figure may move: a share of the baseline's, or so much in the figure's unit,
    whichever is more."""

    relative: float = 0.0
    absolute: float = 0.0

    def allowed(self, baseline: float) -> float:
        """The most by which a figure may differ from this one."""
        return max(self.relative * abs(baseline), self.absolute)


def parse_bound(figure: Figure, text: str) -> Bound:
    """A bound such as `1 %`, `20 ms` or `1 % or 20 ms`. Raises ValueError saying what is allowed."""
    relative = absolute = 0.0
    parts = text.split(" or ")
    try:
        for part in parts:
            if part.rstrip().endswith("%"):
                relative = units.parse_ratio(part.strip())
            else:
                absolute = figure.parse(part.strip())
    except ValueError:
        parts = []
    if not parts or len(parts) > 2 or (len(parts) == 2 and not (relative and absolute)):
        raise ValueError(
            f"{text!r} is no bound of the {figure.title}; allowed: a ratio such as '1 %', "
            f"an amount such as {figure.example!r}, or both ('1 % or {figure.example}': the larger)"
        )
    return Bound(relative, absolute)
