"""Implements `linklab regress`: compares a suite of downloads with its baseline."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from linklab.api import environment
from linklab.commands import report as page
from linklab.commands import running
from linklab.commands.options import RUNS, UsageError, add, given
from linklab.core import whole_file
from linklab.display import printing
from linklab.regression import baseline as baselines
from linklab.regression import checking, cost, cost_showing, fingerprint, junit, showing
from linklab.regression import suite as suites
from linklab.regression.baseline import Baseline, BaselineError
from linklab.regression.checking import MeasuredCell
from linklab.regression.fingerprint import Fingerprint
from linklab.regression.suite import Suite
from linklab.regression.verdict import Status, SuiteReport
from linklab.runs import job, outcome, runner
from linklab.runs.runner import Finished, RunRequest

EPILOG = """\
Exit codes: 0 as the baseline or better, 1 at least one download got worse, 2 no
verdict. LINKLAB_MULTILINK names another build of multilink.

examples:
  linklab regress --junit regress.xml --markdown regress.md
  linklab regress --update --reason 'alg3 asks for less at the end'
  linklab regress my-suite.yaml --real-clock"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, "--processor")
    parser.add_argument(
        "suite",
        nargs="?",
        type=Path,
        default=suites.DEFAULT,
        metavar="SUITE",
        help="a suite file (default profiles/regression/default.yaml)",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="(default: what the suite names)"
    )
    parser.add_argument(
        "--update", action="store_true", help="make this run's figures the baseline"
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="the reason for --update, kept in the baseline"
    )
    add(parser, "--jobs", help="guests at a time, each on a core of its own (default: all)")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary there")
    add(parser, "--report")
    parser.add_argument(
        "--real-clock",
        action="store_true",
        help="measure processor time and memory of the suite's `cost` instead, beside curl's",
    )
    later = "start every client later by S seconds, to see how much results depend on it"
    add(parser, "--out", "--timeout")
    add(parser, "--shift", help=later)
    parser.set_defaults(out=None, shift=None)  # `given` needs None as default.
    add(parser, "--json")


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if options.update and not (options.reason or "").strip():
        raise UsageError("--update needs --reason TEXT: why these figures are right now")
    if options.reason and not options.update:
        raise UsageError("--reason goes with --update")
    if not options.real_clock:
        return
    if virtual_only := given(options, "update", "baseline"):
        raise UsageError(f"--real-clock has no baseline: leave out {virtual_only[0]}")
    if of_guests := given(options, "report", "out", "jobs", "shift", "timeout"):
        raise UsageError(f"--real-clock runs no guests: leave out {of_guests[0]}")


def run(options: argparse.Namespace) -> int:
    """Runs a suite and compares it with its baseline, or makes a new baseline. With
    `--real-clock`, measures the cost of the programs instead.

    Returns 0 if nothing is worse than the limits allow, 1 if something is worse, 2 if there is no
    verdict. Raises BaselineError if the baseline does not fit this suite or machine.
    """
    _check(options)
    page.require_place(options.report, options.out or RUNS)
    suite = suites.load(options.suite)
    if options.real_clock:
        return _on_the_real_clock(suite, options)
    path = options.baseline or suite.baseline
    where = running.choose_place("guest", "virtual")
    entrants = {one.entrant for one in suite.planned}
    environment.require([one.name for one in entrants if one.command is None])
    prints = fingerprint.taken(suite)
    try:
        old = _old(path, suite, prints, update=options.update)
    except BaselineError as error:
        unfounded = SuiteReport(suite.name, str(path), (), 0, 0.0, 0.0, problems=(str(error),))
        _write_reports(options, unfounded)
        raise
    parent = runner.new_directory(options.out or RUNS, time.strftime("%Y%m%d-%H%M%S-regress"))
    parallel = options.jobs or environment.most_side_by_side(where)
    finished: list[Finished] = []

    def run_all(requests: Sequence[RunRequest]) -> Sequence[Finished]:
        finished.extend(running.run_all(requests, where, parent, parallel, options.timeout))
        return finished

    begun = time.monotonic()
    measured = checking.measure(suite, run_all, options.shift or 0.0)
    wall_s = time.monotonic() - begun
    problems = _unfounded(suite, old) if old and not options.update else []
    report = SuiteReport(
        suite=suite.name,
        baseline=str(path),
        checked=tuple(checking.check(measured, old.cells if old else {}, suite.bounds_of)),
        verified=len(suite.verified()),
        wall_s=wall_s,
        virtual_s=sum(_virtual_s(one) for one in finished),
        run_dir=str(parent),
        problems=tuple(problems),
    )
    checking.keep(measured, old.cells if old else {}, suite)
    try:
        if options.update:
            return _update(options, path, prints, measured, report, old)
        _tell(options, report)
        return report.exit_code
    finally:
        # Last, because the page may not be writable. It is also written if there was no baseline.
        _page(options, report)


def _page(options: argparse.Namespace, made: SuiteReport) -> None:
    """Writes a page of the runs if asked for. Repeated runs appear once."""
    if options.report is None:
        return
    runs = [path for path in sorted(Path(made.run_dir).iterdir()) if (path / job.FILE).is_file()]
    once: dict[tuple[str, str | None, int], Path] = {}
    for path in runs:
        one = job.read(path)
        once.setdefault((one.scenario, one.client or one.name, one.seed), path)
    page.of_directories(once.values(), options.report)


def _on_the_real_clock(suite: Suite, options: argparse.Namespace) -> int:
    report = cost.run(suite)
    if options.junit:
        _write(options.junit, junit.render_cost(report, _now()))
    if options.markdown:
        _write(options.markdown, cost_showing.markdown(report))
    if options.json:
        print(json.dumps(cost_showing.to_json(report), indent=2))
    else:
        printing.console().print(cost_showing.table(report))
    return report.exit_code


def _old(path: Path, suite: Suite, prints: Fingerprint, *, update: bool) -> Baseline | None:
    """Returns the baseline to compare with. Without one, returns None for an update, else raises
    BaselineError."""
    if update:
        try:
            return baselines.load(path)
        except BaselineError:
            return None
    found = baselines.load(path)
    different = fingerprint.differences(found.fingerprint, prints)
    if different:
        listed = "".join(f"\n  {one}" for one in different)
        raise BaselineError(
            f"{path}: the baseline was made with other programs or scenarios; what differs says "
            f"nothing about the client. Re-baseline: --update --reason TEXT{listed}"
        )
    return found


def _unfounded(suite: Suite, old: Baseline) -> list[str]:
    """Lists the suite's cells without a baseline, and baselines without a cell."""
    cells = {one.cell for one in suite.planned}
    return [
        *(f"{one} has no baseline: re-baseline" for one in sorted(cells - old.cells.keys())),
        *(
            f"{one} is in the baseline only: re-baseline"
            for one in sorted(old.cells.keys() - cells)
        ),
    ]


def _virtual_s(finished: Finished) -> float:
    try:
        return outcome.read(finished.run_dir).elapsed_ns / 1e9
    except OSError:  # The cell reports the failure.
        return 0.0


def _update(
    options: argparse.Namespace,
    path: Path,
    prints: Fingerprint,
    measured: Sequence[MeasuredCell],
    report: SuiteReport,
    old: Baseline | None,
) -> int:
    """Writes the baseline unless a download failed or did not repeat exactly."""
    failed = [
        f"{one.planned.cell}: {one.trouble or one.failure}"
        for one in measured
        if one.trouble or one.failure
    ]
    if old:
        _tell(options, report)
    else:  # Nothing was compared, so only failures are reported.
        _write_reports(options, replace(report, problems=tuple(failed)))
    if failed:
        listed = "".join(f"\n  {one}" for one in failed)
        raise BaselineError(f"{path}: not written, because not everything was downloaded{listed}")
    made = Baseline(
        reason=" ".join(options.reason.split()),
        made_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
        fingerprint=prints,
        cells={one.planned.cell: one.values for one in measured if one.values is not None},
    )
    _write(path, baselines.write(made))
    if not options.json:
        print(f"{path}: {len(made.cells)} downloads are the baseline now")
    return 0


def _tell(options: argparse.Namespace, report: SuiteReport) -> None:
    """Prints the report, and writes it if asked for."""
    _write_reports(options, report)
    if options.json:
        return
    console = printing.console()
    if report.checked:
        console.print(showing.table(report, console.width))
    print(report.in_one_line)
    if report.of(Status.WORSE) or report.of(Status.ERROR):
        print("what a run's links could carry and did: linklab plot RUN")
    print(f"run directories: {_shown(report.run_dir)}")


def _write_reports(options: argparse.Namespace, report: SuiteReport) -> None:
    """Writes the reports for machines."""
    if options.junit:
        _write(options.junit, junit.render(report, _now()))
    if options.markdown:
        _write(options.markdown, showing.markdown(report))
    if options.json:
        print(json.dumps(showing.to_json(report), indent=2))


def _now() -> str:
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return now.isoformat(timespec="seconds")


def _shown(path: str) -> str:
    """Returns a path relative to the current directory if it lies below, else unchanged."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    whole_file.write(path, text)
