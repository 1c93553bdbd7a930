"""Runs requests, and collects their figures or the reasons why there are none."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from linklab.api import environment
from linklab.api.progress import RUNS, Progress, Tell, silent
from linklab.api.settings import Settings
from linklab.places.choice import Environment
from linklab.runs import clients, runner, summary
from linklab.runs.one_window import in_one_window
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.runs.runner import Finished, RunRequest
from linklab.scenario import Scenario

if TYPE_CHECKING:
    from linklab.runs.comparison import Comparison

Result = RunFigures | str
"""The figures of a run, or why there are none."""


def run_all(
    requests: Sequence[RunRequest],
    where: Environment,
    parent: Path,
    parallel: int,
    timeout_s: float | None,
    tell: Tell = silent,
) -> list[Finished]:
    """Runs all requests. Returns them in the order asked for, because sums of figures must repeat
    to the last digit."""
    numbers = {id(request): number for number, request in enumerate(requests)}
    finished: list[Finished] = []
    shares: dict[int, float] = {}

    def say() -> None:
        labels = [one.label for one in requests if id(one) in shares]
        done = len(finished) + sum(shares.values())
        tell(Progress(RUNS, " ".join(labels), done, len(requests)))

    def carried(request: RunRequest, share: float) -> None:
        shares[id(request)] = share
        say()

    for one in runner.run_all(
        requests, where, parent, parallel=parallel, timeout_s=timeout_s, tell=carried
    ):
        finished.append(one)
        del shares[id(one.request)]
        say()
    return sorted(finished, key=lambda one: numbers[id(one.request)])


def run_one(request: RunRequest, settings: Settings, tell: Tell = silent) -> Finished:
    """Runs a request in the environment that it asks for."""
    where = environment.ready(settings.place, settings.clock, tell, settings.processor)
    (finished,) = run_all([request], where, Path(settings.out), 1, settings.timeout, tell)
    return finished


def figures_of(finished: Finished) -> Result:
    """Returns the figures of a finished run and keeps them, or why there are none."""
    if finished.error is not None:
        return finished.error
    try:
        return summary.write(finished.run_dir)
    except (FigureError, OSError) as error:
        return str(error)


def comparison(
    scenario: Scenario, names: Iterable[str], results: Iterable[tuple[RunRequest, Result]]
) -> Comparison:
    """Compares the runs of one scenario, with the named clients in this order."""
    from linklab.report import publication  # numpy is slow to load.
    from linklab.runs.comparison import compare

    runs: dict[str, list[RunFigures]] = {name: [] for name in names}
    failures: dict[str, list[str]] = {name: [] for name in runs}
    succeeded: list[tuple[RunRequest, RunFigures]] = []
    for request, result in results:
        if request.scenario == scenario:
            if isinstance(result, str):
                failures[request.client_name].append(result)
            else:
                succeeded.append((request, result))
    counted = in_one_window((request.seed, figures) for request, figures in succeeded)
    for (request, _), figures in zip(succeeded, counted, strict=True):
        runs[request.client_name].append(figures)
    compared = compare(scenario, runs, failures, publication.figures_for(scenario))
    return replace(compared, notes=tuple(clients.notes(runs)))


@dataclass(frozen=True)
class RunSeries:
    """Holds runs that were made together, and their results."""

    where: Environment
    parent: Path
    wall_s: float
    finished: list[Finished]
    results: list[tuple[RunRequest, Result]]

    @property
    def failures(self) -> list[str]:
        """Lists why runs have no figures."""
        return [result for _, result in self.results if isinstance(result, str)]

    def comparison(self, scenario: Scenario, names: Iterable[str]) -> Comparison:
        """Compares the runs of one scenario, with the named clients in this order."""
        return comparison(scenario, names, self.results)


def run_series(
    requests: Sequence[RunRequest], settings: Settings, kind: str, tell: Tell = silent
) -> RunSeries:
    """Runs requests as the settings say, in a new directory named after the time and `kind`."""
    where = environment.ready(settings.place, settings.clock, tell, settings.processor)
    parent = runner.new_directory(Path(settings.out), time.strftime(f"%Y%m%d-%H%M%S-{kind}"))
    begun = time.monotonic()
    parallel = settings.parallel or environment.most_side_by_side(where)
    finished = run_all(requests, where, parent, parallel, settings.timeout, tell)
    wall_s = time.monotonic() - begun
    results = [(one.request, figures_of(one)) for one in finished]
    return RunSeries(where, parent, wall_s, finished, results)
