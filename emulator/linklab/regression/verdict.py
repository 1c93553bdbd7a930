"""From a baseline's figures and a run's to what is worse, better or could not be told. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from linklab.core.printable import printable
from linklab.regression.figures import FIGURES, Bound, Cell, Figure, Values
from linklab.runs.beside_baseline import Movement


class Status(Enum):
    """What a cell came to."""

    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    ERROR = "error"
    """It says nothing about the client: the lab hung, came late, or did not repeat itself."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A figure outside its bound. `now` or `baseline` is None where a program does not tell."""

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
            change = f"{(self.now - self.baseline) / self.baseline:+.1%}, "
        return f"{words} ({change}allowed ±{figure.form(self.allowed)})"


@dataclass(frozen=True, slots=True)
class CheckedCell:
    """A cell after its run: status, what deviates, and the reason of a failure or an error.

    `wall_s` is how long the run took, `run_dir` where it left its files.
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
        """What deviates, or what went wrong, in one line without what a terminal would obey."""
        words = self.reason or "; ".join(map(str, self.deviations))
        return printable(words, keep="")


def deviations(baseline: Values, now: Values, bounds: Mapping[str, Bound]) -> tuple[Deviation, ...]:
    """The figures that moved further than their bounds allow; nothing if there is none.

    What a program tells and did not tell before, or the other way round, is a change for the
    worse: somebody has to look at it.
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
"""Where nothing is allowed, any movement is far beyond it."""


def movements(
    baseline: Values, now: Values | None, bounds: Mapping[str, Bound]
) -> tuple[Movement, ...]:
    """How far every figure is from its baseline, whether its bound allows it or not. A download
    without figures fails, which is worse than any bound allows."""
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
    """Worse if any figure is, even where others are better."""
    if any(one.worse for one in found):
        return Status.WORSE
    return Status.BETTER if found else Status.SAME


@dataclass(frozen=True)
class SuiteReport:
    """A whole suite's outcome.

    `virtual_s` are the seconds that all downloads took together, `wall_s` what they took to run.
    """

    suite: str
    baseline: str
    checked: tuple[CheckedCell, ...]
    verified: int
    wall_s: float
    virtual_s: float
    run_dir: str = ""
    problems: tuple[str, ...] = field(default=())
    """What else keeps the suite from saying anything, such as cells without a baseline."""

    def of(self, wanted: Status) -> list[CheckedCell]:
        """The cells of a status."""
        return [one for one in self.checked if one.status is wanted]

    @property
    def exit_code(self) -> int:
        """0: as the baseline or better; 1: something is worse; 2: it could not be told.

        A regression that was seen stays one where other cells could not be run.
        """
        if self.of(Status.WORSE):
            return 1
        return 2 if self.problems or self.of(Status.ERROR) else 0

    @property
    def in_one_line(self) -> str:
        """The counts in words."""
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
