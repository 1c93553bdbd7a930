"""Runs a suite, and compares each run with the baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from linklab.regression import figures, verdict
from linklab.regression.figures import Bound, Cell, Values
from linklab.regression.suite import Planned, Suite
from linklab.regression.verdict import CheckedCell, Status
from linklab.runs import beside_baseline, summary
from linklab.runs.beside_baseline import BesideBaseline
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.runs.runner import Finished, RunRequest

Runs = Callable[[Sequence[RunRequest]], Sequence[Finished]]
"""A function that runs requests and returns their results in the same order."""


@dataclass(frozen=True)
class MeasuredCell:
    """The run of a cell.

    Attributes:
        figures: None if the lab or the client failed.
        error: why the lab failed; also for an unreadable run directory.
        failure: why the client failed.
        again: result of a second run of the cell, in words, if it differed from the first.
    """

    planned: Planned
    finished: Finished
    figures: RunFigures | None
    error: str = ""
    failure: str = ""
    again: str | None = None

    @property
    def trouble(self) -> str:
        """Why the run says nothing about the client; "" if it is valid."""
        if self.error or self.again is None:
            return self.error
        return f"a second run of the same differs: {_in_words(self)}; then {self.again}"

    @property
    def values(self) -> Values | None:
        """The figures to compare."""
        return figures.values(self.figures) if self.figures else None


def measure(suite: Suite, run_all: Runs, shift_s: float = 0.0) -> list[MeasuredCell]:
    """Runs every cell, and afterwards some cells again."""
    wanted = [*suite.planned, *suite.verified()]
    requests = [one.entrant.request(one.scenario, one.cell.seed, shift_s) for one in wanted]
    finished = run_all(requests)
    seconds = {
        wanted[number].cell: _measured(wanted[number], finished[number])
        for number in range(len(suite.planned), len(wanted))
    }
    return [
        _measured(one, finished[number], seconds.get(one.cell))
        for number, one in enumerate(suite.planned)
    ]


def _measured(
    planned: Planned, finished: Finished, second: MeasuredCell | None = None
) -> MeasuredCell:
    found: RunFigures | None = None
    error, failure = finished.error or "", ""
    if not error:
        try:
            found = summary.write(finished.run_dir)
        except FigureError as problem:
            failure = str(problem)
        except OSError as problem:
            error = str(problem)
    again = None
    if second is not None and (second.figures, second.failure) != (found, failure):
        again = _in_words(second)
    return MeasuredCell(planned, finished, found, error, failure, again)


def _in_words(one: MeasuredCell) -> str:
    if one.figures is None:
        return one.error or one.failure
    return f"{one.figures.download_s:.9f} s, {one.figures}"


def check(
    measured: Sequence[MeasuredCell],
    baseline: Mapping[Cell, Values],
    bounds_of: Callable[[Cell], Mapping[str, Bound]],
) -> list[CheckedCell]:
    """Compares each cell with its baseline. Cells without a baseline are left out."""
    return [
        _checked(one, baseline[one.planned.cell], bounds_of(one.planned.cell))
        for one in measured
        if one.planned.cell in baseline
    ]


def keep(measured: Sequence[MeasuredCell], baseline: Mapping[Cell, Values], suite: Suite) -> None:
    """Writes each run's differences from the baseline into its run directory, for `linklab publish`.

    It skips invalid runs, and cells without a baseline.
    """
    for one in measured:
        cell = one.planned.cell
        if cell in baseline and not one.trouble:
            found = verdict.movements(baseline[cell], one.values, suite.bounds_of(cell))
            beside_baseline.write(one.finished.run_dir, BesideBaseline(suite.name, found))


def _checked(one: MeasuredCell, then: Values, bounds: Mapping[str, Bound]) -> CheckedCell:
    found: tuple[verdict.Deviation, ...] = ()
    reason, status = "", Status.SAME
    if one.trouble:
        status, reason = Status.ERROR, one.trouble
    elif one.values is None:
        status, reason = Status.WORSE, f"the download fails: {one.failure}"
    else:
        found = verdict.deviations(then, one.values, bounds)
        status = verdict.status(found)
    return CheckedCell(
        cell=one.planned.cell,
        status=status,
        baseline=then,
        now=one.values,
        deviations=found,
        reason=reason,
        wall_s=one.finished.wall_s,
        run_dir=str(one.finished.run_dir),
    )
