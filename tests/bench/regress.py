"""Section `regress`: tests whether the regression suite finds what got worse, and only that."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import split
from typing import Any

from linklab.regression import suite as suites
from linklab.regression.figures import FIGURES, Cell
from planted import BENIGN, REGRESSIONS, build

from bench.common import REPOSITORY, Bench, BenchError, Result, environment, table, target
from bench.repeatability import busy_loops

SMALL_SUITE = REPOSITORY / "tests" / "regression" / "detects.yaml"
RUNS = 20
MOST_WALL_S = 480.0
LEAST_SPEED = 8.0
"""Virtual seconds per real second."""
CLOSEST = 15


@dataclass(frozen=True)
class Disturbance:
    """Describes what happens beside a suite's run, or to its client, that must not be a regression."""

    name: str
    change: str | None = None
    shift_us: int = 0
    busy: bool = False


DISTURBANCES = (
    *(Disturbance(name, change=name) for name in BENIGN),
    *(Disturbance(f"a start {us} µs later", shift_us=us) for us in (1, 7, 30, 100)),
    Disturbance("a busy host", busy=True),
    Disturbance("a log line more, 3 µs later, a busy host", "a log line more", 3, busy=True),
    Disturbance("another map order, 13 µs later", "another map order", 13),
)
"""In turn, each of them twice."""


def regress(bench: Bench) -> Result:
    """The regression suite: its time, false alarms in 20 disturbed runs, planted regressions."""
    suite = SMALL_SUITE if bench.quick else suites.DEFAULT
    baseline = bench.work / f"{suite.stem}.baseline.yaml"
    clients = {name: _build(bench, name) for name in ("", *BENIGN, *REGRESSIONS)}
    first = _run(bench, suite, baseline, clients[""], "--update", "--reason", "benchmark")
    plain = _run(bench, suite, baseline, clients[""])
    speed = plain["virtual_s"] / plain["wall_s"]
    bench.say(
        f"{suite.stem}: {len(plain['cells'])} downloads in {plain['wall_s']:.0f} s, "
        + target(f"{MOST_WALL_S:.0f}", plain["wall_s"] <= MOST_WALL_S)
        + f"; {speed:.1f} virtual s per real s, "
        + target(f"{LEAST_SPEED:g}", speed >= LEAST_SPEED)
    )
    disturbed = []
    for number in range(RUNS):
        what = DISTURBANCES[number % len(DISTURBANCES)]
        with busy_loops(2) if what.busy else contextlib.nullcontext():
            done = _run(
                bench,
                suite,
                baseline,
                clients[what.change or ""],
                "--shift",
                f"{what.shift_us * 1e-6:.6f}",
            )
        disturbed.append((what, done))
        bench.note(f"{number + 1} of {RUNS}: {what.name}: exit code {done['exit_code']}")
    alarms = [(what.name, done) for what, done in disturbed if done["exit_code"] != 0]
    bench.say(f"{RUNS} disturbed runs: {len(alarms)} false alarms; " + target("0", not alarms))
    for name, done in alarms:
        bench.say(f"  {name}: {', '.join(_worse(done))}")
    spreads = _show_spreads(bench, suite, [done for _, done in disturbed])
    caught = _planted(bench, clients)
    return {
        "suite": suite.stem,
        "wall_s": plain["wall_s"],
        "virtual_s": plain["virtual_s"],
        "first_wall_s": first["wall_s"],
        "disturbed": RUNS,
        "alarms": [[name, _worse(done)] for name, done in alarms],
        "spreads": spreads,
        "caught": caught,
    }


def _build(bench: Bench, name: str) -> Path:
    directory = bench.work / f"client-{len(list(bench.work.glob('client-*')))}"
    directory.mkdir()
    known = {**BENIGN, **REGRESSIONS}
    return build(directory, *([known[name]] if name else []))


def _run(bench: Bench, suite: Path, baseline: Path, client: Path, *words: str) -> dict[str, Any]:
    """Returns the report of one run of a suite. Raises BenchError if it could not run."""
    argv = [
        sys.executable,
        *split("-m linklab regress"),
        suite,
        "--baseline",
        baseline,
        "--out",
        bench.work / "runs",
        "--json",
        *words,
    ]
    done = subprocess.run(
        [*map(str, argv)],
        env=environment(LINKLAB_MULTILINK=str(client)),
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise BenchError(f"linklab regress {suite}: {done.stderr.strip()}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _worse(report: Mapping[str, Any]) -> list[str]:
    return [
        f"{cell['scenario']} {cell['algorithm']} ({_moved(cell)})"
        for cell in report["cells"]
        if cell["status"] in ("worse", "error")
    ]


def _moved(cell: Mapping[str, Any]) -> str:
    return cell["reason"] or ", ".join(
        f"{one['figure']} {one['baseline']} -> {one['now']}" for one in cell["deviations"]
    )


def _show_spreads(bench: Bench, suite: Path, reports: list[dict[str, Any]]) -> Result:
    """Prints the largest changes of figures beside the suite's bounds."""
    bounds_of = suites.load(suite).bounds_of
    widest: dict[tuple[Cell, str], tuple[float, float, float]] = {}
    for report in reports:
        for one in report["cells"]:
            cell = Cell(one["scenario"], one["algorithm"], one["seed"])
            bounds = bounds_of(cell)
            for figure in FIGURES:
                then, now = one["baseline"][figure.key], (one["now"] or {}).get(figure.key)
                if then is not None and now is not None:
                    moved, allowed = abs(now - then), bounds[figure.bound].allowed(then)
                    found = (moved / allowed if allowed else 0.0, moved, then)
                    key = (cell, figure.key)
                    widest[key] = max(widest.get(key, (0.0, 0.0, 0.0)), found)
    shown = table("download", "figure", "was", "moved", "% of bound", left=2)
    closest = sorted(widest.items(), key=lambda one: -one[1][0])[:CLOSEST]
    for (moving, name), (share, moved, then) in closest:
        form = next(one.form for one in FIGURES if one.key == name)
        shown.add_row(str(moving), name, form(then), form(moved), f"{share * 100:.0f}")
    bench.say(f"The {len(closest)} figures that moved furthest:")
    bench.console.print(shown)
    return {
        f"{cell} {key}": {"of_bound": share, "moved": moved, "baseline": then}
        for (cell, key), (share, moved, then) in widest.items()
    }


def _planted(bench: Bench, clients: Mapping[str, Path]) -> Result:
    baseline = bench.work / "planted.baseline.yaml"
    _run(bench, SMALL_SUITE, baseline, clients[""], "--update", "--reason", "benchmark")
    caught = {}
    for name in REGRESSIONS:
        report = _run(bench, SMALL_SUITE, baseline, clients[name])
        caught[name] = _worse(report) if report["exit_code"] == 1 else []
        bench.say(f"{name}: {'; '.join(caught[name]) or 'not caught'}")
    count = sum(map(bool, caught.values()))
    bench.say(f"{count} of {len(caught)} caught; " + target("all", count == len(caught)))
    return caught
