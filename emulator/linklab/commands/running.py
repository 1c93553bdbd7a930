"""Runs what commands ask for, and shows progress on standard error."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.progress import Progress as Bar
from rich.progress import TimeRemainingColumn

from linklab.api import environment, requests, series
from linklab.api.progress import PLACE, RUNS, Progress, Tell
from linklab.api.requests import Plan
from linklab.api.series import RunSeries
from linklab.api.settings import RunOptions, Settings
from linklab.display.parts import Parts
from linklab.display.progress import progress
from linklab.places.choice import Environment
from linklab.runs.runner import Finished, RunRequest


def settings(options: argparse.Namespace) -> Settings:
    """Returns what the options of `options.RUN` and `--parallel` say."""
    return Settings(**_given(options, Settings))


def run_options(options: argparse.Namespace) -> RunOptions:
    """Returns what the options of `RUN`, `SERVER`, `PCAP` and `--energy-model` say."""
    return RunOptions(**_given(options, RunOptions))


def _given(options: argparse.Namespace, kind: type[Settings | RunOptions]) -> dict[str, Any]:
    """Returns the options of a command that are fields of `kind`, which has their defaults."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in vars(options).items() if name in names}


class _Shown:
    """Shows progress: the environment in a line, the guest's parts and the runs as bars."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._lock = threading.Lock()
        self._parts: Parts | None = None
        self._bar: Bar | None = None

    def __call__(self, now: Progress) -> None:
        if now.part == PLACE:
            print(now.what, file=sys.stderr)
        elif now.part == RUNS:
            self._show_runs(now)
        else:
            with self._lock:
                self._parts = self._parts or self._stack.enter_context(Parts())
            self._parts.report(now.part, now.what, now.done / now.total)

    def _show_runs(self, now: Progress) -> None:
        if self._bar is None:
            self._stack.close()  # The guest's bars disappear first.
            self._bar = self._stack.enter_context(progress(TimeRemainingColumn()))
            self._bar.add_task("starting", total=now.total)
        self._bar.update(self._bar.task_ids[0], description=now.what[:40], completed=now.done)


@contextmanager
def shown() -> Iterator[Tell]:
    """Yields the function that shows progress during the block, as bars if standard error is a
    terminal."""
    with ExitStack() as stack:
        yield _Shown(stack)


def choose_place(wanted: str, clock: str) -> Environment:
    """Chooses environment and clock and prints them on standard error. Makes the guest's image and
    kernel if needed."""
    with shown() as tell:
        return environment.ready(wanted, clock, tell)


def announce(place: Environment) -> None:
    """Prints an environment on standard error. Makes image and kernel if it is the guest."""
    with shown() as tell:
        environment.prepare(place, tell)


def run_all(
    asked: Sequence[RunRequest],
    where: Environment,
    parent: Path,
    parallel: int,
    timeout_s: float | None,
) -> list[Finished]:
    """Runs all requests with a progress bar. Returns them in the order asked for."""
    with shown() as tell:
        return series.run_all(asked, where, parent, parallel, timeout_s, tell)


def run_one(request: RunRequest, options: argparse.Namespace) -> Finished:
    """Runs a request as the options of `options.RUN` say."""
    with shown() as tell:
        return series.run_one(request, settings(options), tell)


def run_plan(plan: Plan, options: argparse.Namespace) -> RunSeries:
    """Runs scenarios and clients as the options of `RUN`, `SERVER`, `--runs` and `--parallel` say."""
    where = settings(options)
    asked = requests.for_clients(plan, options.runs, run_options(options), where)
    with shown() as tell:
        return series.run_series(asked, where, "compare", tell)


def to_json(made: RunSeries, options: argparse.Namespace) -> dict[str, Any]:
    """Returns what every command prints about its runs as JSON."""
    return {
        "place": made.where.name,
        "clock": made.where.clock,
        "seed": options.seed,
        "runs": options.runs,
        "run_dir": str(made.parent),
        "wall_s": made.wall_s,
    }


def in_one_line(made: RunSeries, options: argparse.Namespace) -> str:
    """Returns the summary line that every command prints about its runs."""
    return (
        f"{len(made.results)} runs in {made.wall_s:.0f} s; "
        f"run directories: {options.out}/{made.parent.name}"
    )
