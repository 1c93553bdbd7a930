"""Checks each statement of a publication against runs, with a confidence interval. Pure.

Runs of one seed have the same links. If all cells of a scenario have the same seeds, the bootstrap
draws seeds for all cells together. What the cells share is then no noise between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from linklab.core import statistics
from linklab.core.statistics import Interval, Numbers
from linklab.report.measures import MEASURES
from linklab.report.publication import Publication
from linklab.report.skill import Skill, draws, judge
from linklab.report.statement import RunGroup, Statement
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.one_window import in_one_window

Verdict = Literal["holds", "fails", "no runs", "not applicable"]

LEVEL: Final = 0.95
"""Level of the confidence intervals."""

Runs = Mapping[RunGroup, Sequence[LoadedRun]]


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """Holds a statement and its verdict.

    `measured` has the statement's form. It is None if there are no runs or the value is undefined.
    `clear` tells whether the whole interval lies on the verdict's side of the limits. Other seeds
    may change a verdict that is not clear.
    """

    statement: Statement
    verdict: Verdict
    measured: float | None = None
    interval: Interval | None = None
    runs: int = 0

    @property
    def clear(self) -> bool:
        if self.interval is None:
            return False
        expected = self.statement.expected
        if self.verdict == "holds":
            return expected.low <= self.interval.low and self.interval.high <= expected.high
        return self.interval.high < expected.low or expected.high < self.interval.low

    @property
    def error(self) -> float | None:
        """measured - published. None if no single value is published."""
        published = self.statement.expected.value
        return None if self.measured is None or published is None else self.measured - published

    @property
    def error_ratio(self) -> float | None:
        """(measured - published) / published. None if no single value is published, or if it is 0."""
        published = self.statement.expected.value
        return self.error / published if self.error is not None and published else None


@dataclass(frozen=True, slots=True)
class Count:
    """Counts statements that hold and fail, the clear ones of both, and the failures that have an
    explanation."""

    holds: int
    fails: int
    clear: int
    explained: int

    @property
    def all(self) -> int:
        return self.holds + self.fails


def by_cell(runs: Iterable[LoadedRun]) -> dict[RunGroup, list[LoadedRun]]:
    """Groups runs with figures by cell, in the order of seeds. Raises ValueError if a run occurs
    twice."""
    found: dict[RunGroup, dict[tuple[int, str, str], LoadedRun]] = {}
    for one in sorted(runs, key=lambda one: one.job.seed):
        if one.figures is not None:
            seeds = found.setdefault(RunGroup(one.scenario.name, one.client_name, one.first_s), {})
            key = one.job.seed, one.job.place, one.job.clock
            if key in seeds:
                raise ValueError(f"the same run twice: {seeds[key].run_dir} and {one.run_dir}")
            seeds[key] = one
    return {cell: list(seeds.values()) for cell, seeds in found.items()}


def check(publication: Publication, runs: Runs) -> list[CheckedStatement]:
    return [check_one(one, runs) for one in publication.statements]


def skill(checked: Iterable[CheckedStatement], runs: Runs, by_arithmetic: Runs) -> Skill | None:
    """Judges the checked outcomes beside rules that measure nothing. None if there are none."""
    outcomes = [
        one
        for one in checked
        if one.statement.kind == "outcome" and one.verdict in ("holds", "fails")
    ]
    if not outcomes:
        return None
    said = [one.statement for one in outcomes]
    drawn = draws(max(len(found) for found in runs.values()))
    return judge(
        said,
        np.array([one.verdict == "holds" for one in outcomes]),
        np.stack([_table(one, runs).holds_in(drawn) for one in said], axis=1),
        np.array([_table(one, by_arithmetic).holds for one in said]),
    )


def count(checked: Iterable[CheckedStatement]) -> Count:
    """Counts the statements that could be checked."""
    known = [one for one in checked if one.verdict in ("holds", "fails")]
    fails = [one for one in known if one.verdict == "fails"]
    return Count(
        holds=len(known) - len(fails),
        fails=len(fails),
        clear=sum(one.clear for one in known),
        explained=sum(bool(one.statement.why) for one in fails),
    )


def median_error(checked: Iterable[CheckedStatement], *, relative: bool) -> float | None:
    """Returns the median absolute error of published values, None if there are none."""
    errors = _errors(checked, relative=relative)
    return statistics.median(map(abs, errors)) if errors else None


def rms_error(checked: Iterable[CheckedStatement], *, relative: bool) -> float | None:
    """Returns the root mean square error of published values, None if there are none."""
    errors = _errors(checked, relative=relative)
    return statistics.rms(errors) if errors else None


def _errors(checked: Iterable[CheckedStatement], *, relative: bool) -> list[float]:
    return [
        error
        for one in checked
        if one.statement.form == "value"
        and (error := one.error_ratio if relative else one.error) is not None
    ]


def check_one(statement: Statement, runs: Runs) -> CheckedStatement:
    table = _table(statement, runs)
    if not table.is_complete:
        return CheckedStatement(statement, "not applicable" if statement.real_clock else "no runs")
    measured = table.value()
    if not math.isfinite(measured):
        return CheckedStatement(statement, "no runs", runs=table.runs)
    verdict: Verdict = "holds" if table.holds else "fails"
    return CheckedStatement(statement, verdict, measured, table.interval(), table.runs)


def _table(statement: Statement, runs: Runs) -> _Table | _Cases:
    return _Cases(statement, runs) if statement.cases else _Table(statement, runs)


class _Cases:
    """Holds the tables of a count: of each case those of its signs."""

    def __init__(self, statement: Statement, runs: Runs) -> None:
        self._expected = statement.expected
        self._cases = [[_Table(one, runs) for one in case] for case in statement.cases]

    @property
    def is_complete(self) -> bool:
        return all(one.is_complete for case in self._cases for one in case)

    @property
    def runs(self) -> int:
        return min(one.runs for case in self._cases for one in case)

    @property
    def holds(self) -> bool:
        return self.is_complete and self._expected.accepts(*[self.value()] * 2)

    def value(self) -> float:
        return float(sum(any(one.holds for one in case) for case in self._cases))

    def interval(self) -> Interval | None:
        """Returns the number's confidence interval, None if a cell has too few runs."""
        if self.runs < statistics.LEAST_VALUES:
            return None
        ends = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
        low, high = np.percentile(self._counted(draws(self.runs)), ends)
        return Interval(float(low), float(high))

    def holds_in(self, draws: Numbers) -> Any:
        """Tells as that of `_Table`."""
        counted = self._counted(draws)
        return (self._expected.low <= counted) & (counted <= self._expected.high)

    def _counted(self, draws: Numbers) -> Any:
        return sum(np.any([one.holds_in(draws) for one in case], axis=0) for case in self._cases)


class _Table:
    """Holds the numbers of one statement: a row per run for each cell and measure.

    Runs in different environments or on different clocks are never mixed. Virtual time is preferred
    unless the statement needs the real clock or a cell has no such run. Then the guest is preferred
    if every cell has runs there.
    """

    def __init__(self, statement: Statement, runs: Runs) -> None:
        self._statement = statement
        self._columns: dict[tuple[str, RunGroup], Numbers] = {}
        self._seeds: dict[RunGroup, tuple[int, ...]] = {}
        metrics = [one for one in (statement.metric, statement.other) if one]
        ran = [{_clock_and_place(one) for one in runs.get(cell, ())} for cell in statement.cells]
        allowed = ("real",) if statement.real_clock else ("virtual", "real")
        shared = [one for one in set.intersection(*ran) if one[0] in allowed]
        where = min(shared, key=lambda one: (allowed.index(one[0]), one[1]), default=None)
        used = {
            cell: [one for one in runs.get(cell, ()) if _clock_and_place(one) == where]
            for cell in statement.cells
        }
        for cell, found in (_in_one_window(used) if statement.to else used).items():
            chosen = {
                one.job.seed: [_of_run(one, metric, statement.link) for metric in metrics]
                for one in found
            }
            whole = {seed: rows for seed, rows in chosen.items() if None not in rows}
            self._seeds[cell] = tuple(whole)
            for index, metric in enumerate(metrics):
                rows = [values[index] for values in whole.values()]
                if rows:
                    self._columns[metric, cell] = np.array(rows, dtype=np.float64).T

    @property
    def is_complete(self) -> bool:
        """Whether every cell has a run."""
        return all(self._seeds.values())

    @property
    def runs(self) -> int:
        """The least number of runs of a cell."""
        return min(map(len, self._seeds.values()), default=0)

    def value(self) -> float:
        """Returns the statement's measured value, NaN where it is undefined."""
        everybody = [np.arange(len(self._seeds[group[0]])) for group in self._groups]
        with np.errstate(all="ignore"):
            return float(self._of(*everybody, axis=-1))

    @property
    def holds(self) -> bool:
        """Whether every cell has a run, and the statement holds."""
        expected = self._statement.expected
        return self.is_complete and expected.low <= self.value() <= expected.high

    def interval(self) -> Interval | None:
        """Returns the value's confidence interval, None if a cell has too few runs."""
        if self.runs < statistics.LEAST_VALUES:
            return None
        samples = [np.arange(len(self._seeds[group[0]])) for group in self._groups]
        with np.errstate(all="ignore"):
            found = statistics.bootstrap(self._of, samples, level=LEVEL)
        return found if math.isfinite(found.low) and math.isfinite(found.high) else None

    def holds_in(self, draws: Numbers) -> Any:
        """Tells for each draw of runs (`skill.draws`) whether the statement holds."""
        drawn = [
            (draws[:, : len(seeds)] * len(seeds)).astype(int)
            for seeds in (self._seeds[group[0]] for group in self._groups)
        ]
        with np.errstate(all="ignore"):
            values = self._of(*drawn, axis=-1)
        expected = self._statement.expected
        return np.broadcast_to((expected.low <= values) & (values <= expected.high), (len(draws),))

    @property
    def _groups(self) -> list[list[RunGroup]]:
        """Groups cells of a scenario that have the same seeds."""
        groups: dict[tuple[str, tuple[int, ...]], list[RunGroup]] = {}
        for cell, seeds in self._seeds.items():
            groups.setdefault((cell.scenario, seeds), []).append(cell)
        return list(groups.values())

    def _of(self, *drawn: Any, axis: int) -> Any:
        """Computes the value from drawn runs. Each array of `drawn` has row numbers for one group."""
        which = {
            cell: places.astype(int)
            for group, places in zip(self._groups, drawn, strict=True)
            for cell in group
        }

        def one(metric: str, cell: RunGroup) -> Any:
            columns = self._columns[metric, cell]
            return MEASURES[metric].of_many(*columns[:, which[cell]], axis=axis)

        said = self._statement
        if said.form == "value":
            return one(said.metric, said.of[0])
        if said.form == "correlation":
            return _pearson(
                *(np.stack([one(m, cell) for cell in said.of]) for m in (said.metric, said.other))
            )
        best = np.max if said.measure.more_is_better else np.min
        together = np.sum if said.sums else best
        pairs = [
            (
                one(said.metric, cell),
                together(
                    np.stack([one(said.metric, c) for c in said.beside(cell)]),
                    axis=0,
                ),
            )
            for cell in said.of
        ]
        compared = [a / b if said.form == "ratio" else a - b for a, b in pairs]
        return np.mean(np.stack(compared), axis=0)


def _in_one_window(runs: Mapping[RunGroup, list[LoadedRun]]) -> dict[RunGroup, list[LoadedRun]]:
    """Returns the runs of the compared cells. In each scenario the phone's share of the energy
    counts for the same time."""
    counted: dict[RunGroup, list[LoadedRun]] = {cell: [] for cell in runs}
    for scenario in dict.fromkeys(cell.scenario for cell in runs):
        compared = [
            (cell, one, one.figures)
            for cell, found in runs.items()
            for one in found
            if cell.scenario == scenario and one.figures is not None
        ]
        figures = in_one_window((one.job.seed, mine) for _, one, mine in compared)
        for (cell, one, _), mine in zip(compared, figures, strict=True):
            counted[cell].append(replace(one, figures=mine))
    return counted


def _clock_and_place(run: LoadedRun) -> tuple[str, str]:
    return run.job.clock, run.job.place


def _of_run(run: LoadedRun, metric: str, link: str) -> tuple[float, ...] | None:
    columns = MEASURES[metric].columns
    return None if columns is None else columns(run, link if MEASURES[metric].per_link else "")


def _pearson(x: Numbers, y: Numbers) -> Any:
    """Returns Pearson's correlation along the first axis, for all draws at once. NaN if one side is
    constant."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return (x * y).sum(axis=0) / np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
