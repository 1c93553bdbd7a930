"""Compares a run's figures with the baseline's: worse, better, same, or no verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from linklab.core import units
from linklab.core.printable import printable
from linklab.regression.figures import FIGURES, Bound, Cell, Figure, Values
from linklab.runs.beside_baseline import Movement


class Status(Enum):
    """The verdict on a cell."""

    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    ERROR = "error"
    """No verdict on the client: the lab hung, was late, or did not repeat its figures."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A figure outside its bound. `now` or `baseline` is None if the client does not report it."""

    figure: Figure
    baseline: float | None
    now: float | None
    allowed: float
    worse: bool

    def __str__(self) -> str:
        figure = self.figure
        then, now = (
            "none" if value is None else figure.form(value) for value in (self.baseline, self.now)
        )
        words = f"{figure.title} {then} -> {now}"
        if self.baseline is None or self.now is None:
            return words
        change = ""
        if self.baseline:
            change = f"{units.percent((self.now - self.baseline) / self.baseline, '+.1')}, "
        return f"{words} ({change}allowed ±{figure.form(self.allowed)})"


@dataclass(frozen=True, slots=True)
class CheckedCell:
    """A cell after its run: status, deviations, and the reason of a failure or an error.

    `wall_s` is the duration of the run on the real clock.
    """

    cell: Cell
    status: Status
    baseline: Values | None = None
    now: Values | None = None
    deviations: tuple[Deviation, ...] = ()
    reason: str = ""
    wall_s: float = 0.0
    run_dir: str = ""

    def in_words(self) -> str:
        """Returns the deviations or the failure in one line, escaped for a terminal."""
        words = self.reason or "; ".join(map(str, self.deviations))
        return printable(words, keep="")


def deviations(baseline: Values, now: Values, bounds: Mapping[str, Bound]) -> tuple[Deviation, ...]:
    """Returns the figures that changed by more than their bounds.

    A figure that appears or disappears counts as worse, so that a person looks at it.
    """
    found = []
    for figure in FIGURES:
        then, value = baseline.get(figure.key), now.get(figure.key)
        if then is None and value is None:
            continue
        if then is None or value is None:
            found.append(Deviation(figure, then, value, 0.0, worse=True))
            continue
        allowed = bounds[figure.bound].allowed(then)
        if abs(value - then) > allowed:
            worse = (value > then) == figure.more_is_worse
            found.append(Deviation(figure, then, value, allowed, worse))
    return tuple(found)


_LEAST_BOUND = 1e-9
"""The bound that stands for 0, so that any change is far above it."""


def movements(
    baseline: Values, now: Values | None, bounds: Mapping[str, Bound]
) -> tuple[Movement, ...]:
    """Returns every figure's difference from the baseline, within its bound or not.

    A download without figures has failed. That exceeds any bound.
    """
    if now is None:
        return (Movement("the download fails", None, None, None),)
    found = []
    for figure in FIGURES:
        then, value = baseline.get(figure.key), now.get(figure.key)
        if then is None and value is None:
            continue
        by_bound = None
        if then is not None and value is not None:
            worse = value - then if figure.more_is_worse else then - value
            by_bound = worse / max(bounds[figure.bound].allowed(then), _LEAST_BOUND)
        found.append(Movement(figure.title, then, value, by_bound))
    return tuple(found)


def status(found: Sequence[Deviation]) -> Status:
    """Returns the verdict: worse if any figure is worse, even if others are better."""
    if any(one.worse for one in found):
        return Status.WORSE
    return Status.BETTER if found else Status.SAME


@dataclass(frozen=True)
class SuiteReport:
    """The outcome of a whole suite.

    `virtual_s` is the sum of the download times, `wall_s` the duration on the real clock.
    """

    suite: str
    baseline: str
    checked: tuple[CheckedCell, ...]
    verified: int
    wall_s: float
    virtual_s: float
    run_dir: str = ""
    problems: tuple[str, ...] = field(default=())
    """Other reasons for no verdict, such as cells without a baseline."""

    def of(self, wanted: Status) -> list[CheckedCell]:
        """Returns the cells with a status."""
        return [one for one in self.checked if one.status is wanted]

    @property
    def exit_code(self) -> int:
        """The exit code. 0: as the baseline or better. 1: something is worse. 2: no verdict.

        1 wins over 2: a regression counts even if other cells could not run.
        """
        if self.of(Status.WORSE):
            return 1
        return 2 if self.problems or self.of(Status.ERROR) else 0

    @property
    def in_one_line(self) -> str:
        """Returns the counts in words."""
        counts = ", ".join(
            f"{len(self.of(one))} {one.value}"
            for one in Status
            if self.of(one) or one is Status.WORSE
        )
        return (
            f"{self.suite}: {len(self.checked)} downloads, {counts}; {self.verified} run twice; "
            f"{self.wall_s:.0f} s, {self.virtual_s / self.wall_s if self.wall_s else 0:.1f} "
            "virtual s per real s"
        )
