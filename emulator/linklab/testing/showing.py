"""Shows in words and as text how the links of tests went."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linklab.core import units
from linklab.core.link_kinds import link_title
from linklab.core.printable import printable
from linklab.runs.job import SCENARIO_FILE

_COLUMNS = 79

Noted = dict[str, Any]
"""What a test's property says of a run (`lab_fixture.py`)."""


def in_words(run: Noted) -> str:
    """Returns a run in one line: its result on the lab's clock and on the real one, and what each
    link carried. Pure."""
    took = "failed" if run["lab_s"] is None else f"{run['lab_s']:.3f} s{run['goodput']}"
    links = ", ".join(
        f"{link_title(name)} {carried / 1e6:.1f} MB ({units.percent(share)})"
        for name, (carried, share) in run["links"].items()
    )
    said = f"{run['run']}: {took} (real {run['wall_s']:.1f} s)"
    return printable(f"{said}; {links or run['error'] or ''}", keep="")


def sections(runs: Sequence[Noted]) -> list[tuple[str, str]]:
    """Returns a section for each run of a failed test: capacity and use of its links as text."""
    return [(f"linklab: {printable(one['run'])}", _section(one)) for one in runs]


def _section(run: Noted) -> str:
    from linklab.report import plot_terminal, run_plot  # Only failed tests need them.

    try:
        drawn = plot_terminal.text(run_plot.of_run(Path(run["run_dir"])), _COLUMNS)
    except (ValueError, OSError) as error:
        drawn = f"no plot: {error}"
    return f"{in_words(run)}\n{drawn}\nrun directory: {run['run_dir']}"


def summary(tests: Sequence[tuple[str, str, Sequence[Noted]]]) -> list[str]:
    """Returns a line for each run of a failed test, and the totals of all. Each test is its name,
    outcome and runs. Pure."""
    lines = [
        f"{name}: {in_words(one)}"
        for name, outcome, runs in tests
        if outcome == "failed"
        for one in runs
    ]
    every = [one for _, _, runs in tests for one in runs]
    lab_s = sum(one["lab_s"] or 0.0 for one in every)
    wall_s = sum(one["wall_s"] for one in every)
    count = "1 run" if len(every) == 1 else f"{len(every)} runs"
    return [*lines, f"{count}: {lab_s:.1f} s of the lab's time in {wall_s:.1f} s of real time"]


def write_page(page: Path, runs: Sequence[Noted]) -> str:
    """Writes a report of runs. Returns a line that says where, or why not. Of several tests that ran
    the same client and seed in the same scenario, it shows the first: a report has each once."""
    different = {(one["run"], _scenario(one)): one["run_dir"] for one in reversed(runs)}
    directories = reversed(different.values())
    done = subprocess.run(
        [sys.executable, "-m", "linklab", "report", *directories, "-o", page],
        capture_output=True,
        text=True,
        check=False,
    )
    if page.is_file():
        return f"report of failed tests: {page}"
    return f"no report of failed tests: {printable(done.stderr.strip())}"


def _scenario(run: Noted) -> bytes:
    try:
        return (Path(run["run_dir"]) / SCENARIO_FILE).read_bytes()
    except OSError:
        return b""
