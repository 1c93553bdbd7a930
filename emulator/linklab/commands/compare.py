"""`run`, `compare` and `exec`: from a command line's options to runs to what is printed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from linklab.core import plain_file
from linklab.core.complaint import complain
from linklab.core.progress import progress
from linklab.places import choice
from linklab.places.choice import Place
from linklab.places.guest.__main__ import build_kernel
from linklab.report import reproduction, tables
from linklab.runs import run_figures, runner, summary
from linklab.runs.clients import obstacle
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.runs.runner import Finished, Request
from linklab.scenario import Scenario, find


def choose_place(wanted: str, clock: str) -> Place:
    """The place and clock, said in one line on standard error; the guest's kernel is there."""
    chosen = choice.choose(wanted, clock)
    print(chosen, file=sys.stderr)
    if chosen.name == "guest":
        build_kernel()
    return chosen


def figures_of(finished: Finished) -> RunFigures | str:
    """The figures of a finished run, or why there are none."""
    if finished.error is not None:
        return finished.error
    try:
        return summary.write(finished.run_dir)
    except (FigureError, OSError) as error:
        return str(error)


def run_with_progress(
    requests: Sequence[Request], where: Place, parent: Path, parallel: int, timeout_s: float | None
) -> list[Finished]:
    """Runs all requests with a progress bar where standard error is a terminal."""
    finished = []
    with progress() as bar:
        task = bar.add_task("starting", total=len(requests))
        running: list[str] = []

        def started(request: Request) -> None:
            running.append(request.label)
            bar.update(task, description=" ".join(running)[:40])

        for one in runner.run_all(
            requests, where, parent, parallel=parallel, timeout_s=timeout_s, started=started
        ):
            finished.append(one)
            running.remove(one.request.label)
            bar.update(task, advance=1, description=" ".join(running)[:40])
    return finished


def _single(options: argparse.Namespace, request: Request) -> int:
    where = choose_place(options.place, options.clock)
    (finished,) = run_with_progress([request], where, options.out, 1, options.timeout)
    figures = figures_of(finished)
    if options.json:
        print(json.dumps({
            "scenario": request.scenario.name,
            "algorithm": request.contestant,
            "seed": request.seed,
            "run_dir": str(finished.run_dir),
            "wall_s": finished.wall_s,
            "error": figures if isinstance(figures, str) else None,
            "figures": None if isinstance(figures, str) else asdict(figures),
        }, indent=2))  # fmt: skip
        return 1 if isinstance(figures, str) else 0
    if isinstance(figures, str):
        complain(f"{request.label}: {figures}")
        print(f"run directory: {finished.run_dir}", file=sys.stderr)
        return 1
    print(
        f"{request.label}: {figures.download_s:.3f} s, "
        f"{figures.goodput_bps / 1e6:.1f} Mbit/s, efficiency {figures.efficiency:.3f}"
    )
    for name, link in figures.links.items():
        done = "" if link.finish_s is None else f", done at {link.finish_s:.3f} s"
        print(f"  {name:<5} {link.bytes / 1e6:7.1f} MB ({link.share:.0%}){done}")
    print(f"run directory: {finished.run_dir}")
    return 0


def run(options: argparse.Namespace, contestant: str) -> int:
    """One contestant in one scenario; 0, or 1 if the run failed."""
    require([contestant])
    scenario = find(options.scenario)
    return _single(options, Request(scenario, contestant, options.seed, shift_s=options.shift))


def _from_here(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command whose program, if named by a relative path, lies where the user stands: the
    client's place is another directory."""
    program, *words = command
    return (str(Path(program).absolute()) if "/" in program else program, *words)


def execute(options: argparse.Namespace, command: tuple[str, ...]) -> int:
    """A user's command in the client's place, what it writes passed on; 0, or 1 if it failed."""
    scenario = find(options.scenario)
    request = Request(
        scenario, None, options.seed, command=_from_here(command), shift_s=options.shift
    )
    where = choose_place(options.place, options.clock)
    (finished,) = run_with_progress([request], where, options.out, 1, options.timeout)
    for name, stream in (("client.out", sys.stdout), ("client.err", sys.stderr)):
        path = finished.run_dir / name
        if os.path.lexists(path) and not options.json:
            stream.flush()
            with plain_file.opened(path) as file:
                shutil.copyfileobj(file, stream.buffer)
            stream.buffer.flush()
    outcome = None if finished.error is not None else summary.outcome_of(finished.run_dir)
    if options.json:
        print(json.dumps({
            "scenario": scenario.name,
            "command": list(command),
            "run_dir": str(finished.run_dir),
            "error": finished.error,
            "exit_code": outcome and outcome.exit_code,
            "elapsed_s": outcome and outcome.elapsed_ns / 1e9,
            "received_bytes": outcome and outcome.received_bytes,
        }, indent=2))  # fmt: skip
    elif outcome is None:
        complain(finished.error)
    else:
        received = ", ".join(f"{k} {v / 1e6:.1f} MB" for k, v in outcome.received_bytes.items())
        print(
            f"exit code {outcome.exit_code} after {outcome.elapsed_ns / 1e9:.3f} s; "
            f"received: {received}\nrun directory: {finished.run_dir}",
            file=sys.stderr,
        )
    return 0 if outcome is not None and outcome.exit_code == 0 else 1


def live(options: argparse.Namespace, names: list[str]) -> int:
    """A live lab until it is interrupted."""
    from linklab.live import session as lab

    require(names)
    scenario = find(options.scenario)
    where = lab.choose_place(options.place)
    print(where, file=sys.stderr)
    if where.name == "guest":
        build_kernel()
    lab.live(
        scenario, names, seed=options.seed, where=where, parent=options.out,
        address=options.address, dashboards=options.dashboards,
    )  # fmt: skip
    return 0


def most_side_by_side(where: Place) -> int:
    """How many runs at a time: a guest in virtual time per core; runs on the real clock would disturb each other."""
    return len(os.sched_getaffinity(0)) if where.clock == "virtual" else 1


def require(names: Sequence[str]) -> None:
    """RunError where the named contestants cannot run on this machine."""
    missing = obstacle(names)
    if missing is not None:
        raise runner.RunError(missing)


def compare(options: argparse.Namespace, names: list[str]) -> int:
    """Every contestant in every scenario, `--runs` seeds each; 1 if any run failed."""
    require(names)
    scenarios: list[Scenario] = []
    for scenario in map(find, options.scenarios):
        if scenario not in scenarios:  # Else its runs would count in two tables.
            scenarios.append(scenario)
    requests = [
        Request(scenario, name, options.seed + n, shift_s=options.shift)
        for scenario in scenarios
        for name in names
        for n in range(options.runs)
    ]
    where = choose_place(options.place, options.clock)
    parent = runner.new_directory(options.out, time.strftime("%Y%m%d-%H%M%S-compare"))
    begun = time.monotonic()
    parallel = options.parallel or most_side_by_side(where)
    finished = run_with_progress(requests, where, parent, parallel, options.timeout)
    wall_s = time.monotonic() - begun
    results = [(one, figures_of(one)) for one in finished]
    comparisons = [_comparison(scenario, names, results) for scenario in scenarios]
    if options.json:
        print(json.dumps({
            "place": where.name,
            "clock": where.clock,
            "seed": options.seed,
            "runs": options.runs,
            "run_dir": str(parent),
            "wall_s": wall_s,
            "comparisons": [tables.to_json(one) for one in comparisons],
        }, indent=2))  # fmt: skip
    else:
        console = Console()
        for one in comparisons:
            tables.show(one, console)
        print(
            f"{len(requests)} runs in {wall_s:.0f} s; run directories: {options.out}/{parent.name}"
        )
    failures = [one for one, figures in results if isinstance(figures, str)]
    return 1 if failures else 0


def reproduce(options: argparse.Namespace) -> int:
    """A publication's rows beside the same rows measured; 1 if any run failed.

    Cells outside their tolerance are a finding and no failure.
    """
    scenarios = [find(name) for name in reproduction.PUBLICATIONS[options.publication]]
    wanted = [(scenario, row.algorithm) for scenario in scenarios for row in scenario.published]
    require([name for _, name in wanted])
    requests = [
        Request(scenario, name, options.seed + n, shift_s=options.shift)
        for n in range(options.runs)
        for scenario, name in wanted
    ]
    where = choose_place(options.place, options.clock)
    parent = runner.new_directory(options.out, time.strftime("%Y%m%d-%H%M%S-reproduce"))
    begun = time.monotonic()
    parallel = options.parallel or most_side_by_side(where)
    finished = run_with_progress(requests, where, parent, parallel, options.timeout)
    wall_s = time.monotonic() - begun
    results = [(one, figures_of(one)) for one in finished]
    cells = reproduction.cells(
        scenarios,
        {
            one.name: _comparison(one, [row.algorithm for row in one.published], results)
            for one in scenarios
        },
    )
    failures = [figures for _, figures in results if isinstance(figures, str)]
    if options.json:
        print(json.dumps({
            "publication": options.publication,
            "place": where.name,
            "clock": where.clock,
            "seed": options.seed,
            "runs": options.runs,
            "run_dir": str(parent),
            "wall_s": wall_s,
            "cells": [asdict(cell) for cell in cells],
            "calibration": asdict(reproduction.count(cells, calibration=True)),
            "outcomes": asdict(reproduction.count(cells, calibration=False)),
            "failures": failures,
        }, indent=2))  # fmt: skip
    else:
        tables.show_reproduction(cells, Console())
        for failure in failures:
            complain(failure)
        print(
            f"{len(requests)} runs in {wall_s:.0f} s; run directories: {options.out}/{parent.name}"
        )
    return 1 if failures else 0


def _comparison(
    scenario: Scenario, names: list[str], results: list[tuple[Finished, RunFigures | str]]
) -> run_figures.Comparison:
    """The runs of one scenario, in the order in which the contestants were asked for."""
    runs: dict[str, list[RunFigures]] = {name: [] for name in names}
    failures: dict[str, list[str]] = {name: [] for name in names}
    for one, figures in results:
        if one.request.scenario == scenario and one.request.contestant is not None:
            if isinstance(figures, str):
                failures[one.request.contestant].append(figures)
            else:
                runs[one.request.contestant].append(figures)
    return run_figures.compare(scenario, runs, failures)
