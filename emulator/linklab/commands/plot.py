"""Implements `linklab plot`: draws a scenario or a run in the terminal, or as PNG or SVG."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from linklab import scenario
from linklab.commands.options import UsageError, add, given
from linklab.core import extras, whole_file
from linklab.core.records import FILES, LinkRecord
from linklab.report import plotting, run_plot
from linklab.runs import job
from linklab.schema.mapping import guess

EPILOG = """\
examples:
  linklab plot hs-s7                  the capacity of its links
  linklab plot tm --seed 3 -o tm.png  as a picture too
  linklab plot runs/hs-s7-alg3-seed1  capacity and use of a run's links
  linklab plot runs/campaign-thesis --figure hs-s7/times -o times.svg"""


_FEW = 20
"""The most names of figures that an error lists."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, "--seed")
    parser.set_defaults(seed=None)  # `given` needs None as default.
    parser.add_argument("what", metavar="SCENARIO|RUN", help="a scenario, or a run directory")
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="seconds of a scenario (default: 1.2 times the oracle's)",
    )
    parser.add_argument(
        "--figure",
        metavar="NAME",
        help="write a chart of `linklab report`, such as hs-s7/alg3/rates, to the -o FILE.svg or "
        "FILE.png",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write a picture")
    parser.add_argument("--no-terminal", action="store_true", help="draw nothing in the terminal")
    parser.add_argument("--json", action="store_true", help="print the drawn data as JSON")


def run(options: argparse.Namespace) -> int:
    """Draws. Raises UsageError or ScenarioError if there is nothing to draw."""
    if options.figure is not None:
        return _figure(options)
    return _draw(options)


def _figure(options: argparse.Namespace) -> int:
    """Writes a chart of a report to a file. Raises UsageError for an unknown chart or file type."""
    extras.require("report", "--figure")
    from linklab.commands import existing, report_page  # numpy is slow to load.
    from linklab.report import page, vega

    if unused := given(options, "seed", "seconds", "json"):
        raise UsageError(f"--figure is of runs that are there: leave out {unused[0]}")
    form = "" if options.output is None else options.output.suffix.removeprefix(".")
    if form not in vega.FORMATS:
        raise UsageError("--figure needs -o FILE.svg or -o FILE.png")
    models = existing.EnergyModels()
    runs = existing.read([Path(options.what)], models)
    report_page.report_failed_runs(runs)
    shown, _ = report_page.context(runs, models)
    charts = {one.name: one.spec for one in page.all_charts(shown)}
    if options.figure not in charts:
        known = ", ".join([*charts][:_FEW]) or "none"
        more = f" and {len(charts) - _FEW} more" if len(charts) > _FEW else ""
        raise UsageError(
            f"no figure is called {options.figure!r}{guess(options.figure, charts)}; "
            f"there are: {known}{more}"
        )
    whole_file.write(options.output, vega.drawn(charts[options.figure], form))
    return 0


def _runs_in(directory: Path) -> list[Path]:
    """Returns the run directories in a directory, the newest last."""
    found = [one for one in directory.iterdir() if (one / job.FILE).is_file()]
    return sorted(found, key=lambda one: (one / job.FILE).stat().st_mtime_ns)


def _draw(options: argparse.Namespace) -> int:
    """Draws a plot. Raises ScenarioError for an unknown scenario, UsageError for an invalid time or run."""
    if options.seconds is not None and not 0 < options.seconds <= plotting.MAX_SECONDS:
        raise UsageError(f"--seconds {options.seconds:g}; allowed: up to {plotting.MAX_SECONDS:g}")
    if options.output is not None:
        extras.require("report", "a picture")
    directory = Path(options.what)
    if any((directory / name).is_file() for name in (job.FILE, FILES[LinkRecord])):
        if unused := given(options, "seed", "seconds"):
            raise UsageError(f"{directory}: is a run, drawn as it was: leave out {unused[0]}")
        try:
            plot = run_plot.of_run(directory)
        except ValueError as error:
            raise UsageError(str(error)) from error
    elif directory.is_dir() and (inside := _runs_in(directory)):
        raise UsageError(
            f"{directory} holds {len(inside)} runs; allowed: one of them, such as {inside[-1]}. "
            f"`linklab report {directory}` shows all"
        )
    else:
        seed = 1 if options.seed is None else options.seed
        plot = plotting.of_scenario(scenario.find(options.what), seed, options.seconds)
    if options.json:
        print(json.dumps(plotting.to_json(plot)))
    elif not options.no_terminal:
        from linklab.report import plot_terminal  # plotext is slow to load.

        columns = shutil.get_terminal_size((80, 24)).columns
        print(plot_terminal.text(plot, min(columns, 160) - 1), end="")
    if options.output is not None:
        from linklab.report import plot_picture  # Vega is slow to load.

        plot_picture.draw(plot, options.output)
    return 0
