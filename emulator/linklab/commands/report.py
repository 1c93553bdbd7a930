"""Implements `linklab report`: writes runs as one page that needs no network."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from linklab.commands.options import UsageError, add
from linklab.core import extras

if TYPE_CHECKING:
    from linklab.commands.report_page import Predictions
    from linklab.report.dependence_showing import Unknowns

EPILOG = """\
examples:
  linklab report runs/campaign-thesis
  linklab report runs/20260101-120000-compare -o wifi.html"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUNS",
        help="run directories, or directories with runs",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="default: report.html",
    )
    add(parser, "--energy-model", more="instead of the scenarios'")


def run(options: argparse.Namespace) -> int:
    """Writes the page and reports failed runs. Returns 1 if there are any."""
    extras.require_page("linklab report")
    from linklab.commands import existing, report_page  # numpy is slow to load.

    models = existing.EnergyModels(options.energy_model)
    found = existing.read(options.runs, models)
    report_page.written(found, options.output, models)
    return 1 if report_page.report_failed_runs(found) else 0


def require_place(output: Path | None, out: Path) -> None:
    """Checks before the runs that the page can be written. Makes the directory `out`. Raises
    UsageError, MissingExtra."""
    if output is None:
        return
    extras.require_page("--report")
    if output.is_dir():
        raise UsageError(f"--report {output}: is a directory; allowed: a file, such as report.html")
    runs = out.absolute()
    if not output.parent.is_dir() and output.parent.absolute() not in (runs, *runs.parents):
        raise UsageError(f"--report {output}: there is no directory {output.parent}")


def of_directories(
    paths: Iterable[Path],
    output: Path | None,
    energy_model: str | None = None,
    predictions: Predictions | None = None,
    unknowns: Unknowns | None = None,
) -> None:
    """Writes a page of the runs in directories, if asked for (`--report`)."""
    if output is not None:
        from linklab.commands import existing, report_page  # numpy is slow to load.

        models = existing.EnergyModels(energy_model)
        report_page.written(existing.read(paths, models), output, models, predictions, unknowns)
