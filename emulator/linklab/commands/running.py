"""Runs what commands ask for: chooses the environment, shows progress, returns figures or errors."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linklab.commands.options import server, share
from linklab.display.progress import progress
from linklab.places import choice
from linklab.places.choice import Environment
from linklab.places.guest import kernel
from linklab.places.guest.__main__ import make_guest
from linklab.runs import clients, run_energy, runner, summary
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.runs.runner import Finished, RunRequest
from linklab.scenario import Scenario

if TYPE_CHECKING:
    from linklab.runs.comparison import Comparison

Result = RunFigures | str
"""The figures of a run, or why there are none."""


def choose_place(wanted: str, clock: str) -> Environment:
    """Chooses environment and clock and prints them on standard error. Makes the guest's image and
    kernel if needed."""
    chosen = choice.choose(wanted, clock)
    announce(chosen)
    return chosen


def announce(place: Environment) -> None:
    """Prints an environment on standard error. Makes image and kernel if it is the guest."""
    print(place, file=sys.stderr)
    if place.name == "guest":
        make_guest(kernel.RECIPES if place.is_emulated else (kernel.GUEST,))


def require(names: Sequence[str], place: str = "guest", clock: str = "auto") -> None:
    """Raises RunError if these clients cannot run in the environment."""
    missing = clients.obstacle(names, choice.choose(place, clock).name)
    if missing is not None:
        raise runner.RunError(missing)


def most_side_by_side(where: Environment) -> int:
    """Returns how many runs go in parallel: one per core in virtual time. On the real clock runs
    would disturb each other."""
    return len(os.sched_getaffinity(0)) if where.clock == "virtual" else 1


def run_all(
    requests: Sequence[RunRequest],
    where: Environment,
    parent: Path,
    parallel: int,
    timeout_s: float | None,
) -> list[Finished]:
    """Runs all requests, with a progress bar if standard error is a terminal. Returns them in the
    order asked for, because sums of figures must repeat to the last digit."""
    from rich.progress import TimeRemainingColumn  # rich is slow to load.

    numbers = {id(request): number for number, request in enumerate(requests)}
    finished = []
    with progress(*([TimeRemainingColumn()] if where.is_emulated else [])) as bar:
        task = bar.add_task("starting", total=len(requests))
        running: list[str] = []

        def started(request: RunRequest) -> None:
            running.append(request.label)
            bar.update(task, description=" ".join(running)[:40])

        for one in runner.run_all(
            requests, where, parent, parallel=parallel, timeout_s=timeout_s, started=started
        ):
            finished.append(one)
            running.remove(one.request.label)
            bar.update(task, advance=1, description=" ".join(running)[:40])
    return sorted(finished, key=lambda one: numbers[id(one.request)])


def run_one(request: RunRequest, options: argparse.Namespace) -> Finished:
    """Runs a request as the options of `options.add_run` say."""
    where = choose_place(options.place, options.clock)
    (finished,) = run_all([request], where, options.out, 1, options.timeout)
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
    for request, result in results:
        if request.scenario == scenario:
            if isinstance(result, str):
                failures[request.client_name].append(result)
            else:
                runs[request.client_name].append(result)
    compared = compare(scenario, runs, failures, publication.figures_for(scenario))
    return replace(compared, notes=tuple(clients.notes(runs)))


@dataclass(frozen=True)
class RunSeries:
    """Holds runs that were made together, and their results."""

    options: argparse.Namespace
    where: Environment
    parent: Path
    wall_s: float
    results: list[tuple[RunRequest, Result]]

    @property
    def failures(self) -> list[str]:
        """Lists why runs have no figures."""
        return [result for _, result in self.results if isinstance(result, str)]

    def comparison(self, scenario: Scenario, names: Iterable[str]) -> Comparison:
        """Compares the runs of one scenario, with the named clients in this order."""
        return comparison(scenario, names, self.results)

    def to_json(self) -> dict[str, Any]:
        """Returns what every command prints about its runs as JSON."""
        return {
            "place": self.where.name,
            "clock": self.where.clock,
            "seed": self.options.seed,
            "runs": self.options.runs,
            "run_dir": str(self.parent),
            "wall_s": self.wall_s,
        }

    def in_one_line(self) -> str:
        """Returns the summary line that every command prints about its runs."""
        return (
            f"{len(self.results)} runs in {self.wall_s:.0f} s; "
            f"run directories: {self.options.out}/{self.parent.name}"
        )


def requests_of(
    plan: Sequence[tuple[Scenario, Sequence[str]]], options: argparse.Namespace
) -> list[RunRequest]:
    """Returns a request for every scenario and client of the plan, with `--runs` seeds from
    `--seed` on. The other options are those of `add_run` and `add_server`."""
    own, shared = server(options), share(options, for_server=True)
    return [
        RunRequest(
            scenario,
            name,
            options.seed + n,
            shift_s=options.shift,
            energy=energy,
            server=own,
            share=shared,
        )
        for scenario, names in plan
        for energy in [run_energy.model_for(scenario, options.energy_model)]
        for name in names
        for n in range(options.runs)
    ]


def run_series(requests: Sequence[RunRequest], options: argparse.Namespace, kind: str) -> RunSeries:
    """Runs requests as the options of `add_run`, `--runs` and `--parallel` say, in a new directory
    named after the time and `kind`."""
    where = choose_place(options.place, options.clock)
    parent = runner.new_directory(options.out, time.strftime(f"%Y%m%d-%H%M%S-{kind}"))
    begun = time.monotonic()
    parallel = options.parallel or most_side_by_side(where)
    finished = run_all(requests, where, parent, parallel, options.timeout)
    wall_s = time.monotonic() - begun
    results = [(one.request, figures_of(one)) for one in finished]
    return RunSeries(options, where, parent, wall_s, results)
