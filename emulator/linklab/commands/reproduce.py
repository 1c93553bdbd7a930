"""Implements `linklab reproduce`: compares each statement of a publication with runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from linklab.api import environment
from linklab.commands import campaign, existing, report
from linklab.commands.options import (
    UsageError,
    add_energy_model,
    add_json,
    add_processor,
    add_report,
    add_seed,
    add_side_by_side,
    add_timeout,
    count,
    given,
)
from linklab.core import extras
from linklab.core.error_report import report_error
from linklab.core.limits import MAX_RUNS
from linklab.display import printing
from linklab.energy import library
from linklab.regression import fingerprint
from linklab.report import arithmetic, publication, reproduction, reproduction_showing
from linklab.report.publication import Publication
from linklab.runs import clients, first_seconds, loaded_runs, run_energy
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.matrix import Campaign
from linklab.runs.run_figures import FigureError
from linklab.runs.runner import RunRequest

EPILOG = """\
Complete runs in --out are kept: after Ctrl-C call it once more.

examples:
  linklab reproduce thesis                  all of it: 510 runs
  linklab reproduce mptcp --runs 5
  linklab reproduce thesis --from runs/campaign-thesis   existing runs only

Processor and memory need the real clock, which another command runs:
  linklab compare hs-s6 hs-s7 ls ts tm ao --clock real --out runs/real
  linklab reproduce thesis --from runs/reproduce-thesis runs/real/*"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `linklab reproduce`."""
    add_processor(parser)
    parser.add_argument("publication", choices=publication.names())
    parser.add_argument(
        "--runs",
        type=count(MAX_RUNS),
        metavar="N",
        help="runs of each, with seeds SEED…SEED+N-1 (default: as in the publication). "
        "Clear verdicts need at least 5",
    )
    add_seed(parser)
    parser.set_defaults(seed=None)  # `given` needs None as default.
    parser.add_argument(
        "--from",
        dest="there",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="use these run directories, or those in them, and run nothing",
    )
    add_side_by_side(
        parser, "--jobs", "workers on this machine, each on a core of its own (default: all)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="for run directories (runs/reproduce-NAME)"
    )
    add_timeout(parser)
    add_energy_model(parser, "instead of the scenarios'")
    add_report(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Runs what is missing and checks every statement. Returns 1 if a run failed.

    A statement that does not hold is a result, not a failure.
    """
    extras.require("report", "linklab reproduce")
    unused = given(options, "runs", "seed", "jobs", "out", "timeout")
    if options.there and unused:
        raise UsageError(f"--from runs nothing: leave out {unused[0]}")
    stated = publication.find(options.publication)
    out = options.out or Path("runs", f"reproduce-{stated.name}")
    report.require_place(options.report, out)
    found, failures, line = _given(options) if options.there else _made(options, stated, out)
    used = _only_these(stated, found)
    begun = _first_seconds(stated, used, options.energy_model)
    try:
        cells = reproduction.by_cell([*used, *begun])
    except ValueError as error:
        raise UsageError(str(error)) from None
    checked = reproduction.check(stated, cells)
    by_rates = arithmetic.beside(stated, cells, run_energy.models(options.energy_model))
    skill = reproduction.skill(checked, cells, by_rates)
    notes = clients.notes(dict.fromkeys(one.client_name for one in used))
    if options.json:
        said = reproduction_showing.to_json(stated, checked, skill)
        counts = {"runs": len(used), "failures": failures, "notes": notes}
        print(json.dumps({**said, **counts}, indent=2))
    else:
        console = printing.console()
        reproduction_showing.show(checked, skill, console)
        for note in notes:
            reproduction_showing.tell(note, console)
        for failure in failures:
            report_error(failure)
        print(line)
    report.of_directories([one.run_dir for one in used], options.report, options.energy_model)
    return 1 if failures else 0


def _made(
    options: argparse.Namespace, stated: Publication, out: Path
) -> tuple[list[LoadedRun], list[str], str]:
    """Makes the runs that the statements need, as a campaign. Returns them, the reasons of
    failures, and a summary line."""
    environment.require([cell.client for cell in stated.cells], "guest", "virtual")
    scenarios = {cell.scenario: stated.scenario(cell.scenario) for cell in stated.cells}
    energies = {
        name: run_energy.model_for(one, options.energy_model) for name, one in scenarios.items()
    }
    seed = 1 if options.seed is None else options.seed
    requests = tuple(
        RunRequest(scenarios[cell.scenario], cell.client, seed + n, energy=energies[cell.scenario])
        for n in range(options.runs or stated.runs)
        for cell in stated.cells
    )
    path = publication.DIRECTORY / f"{stated.name}.yaml"
    planned = Campaign(f"reproduce-{stated.name}", stated.title, path, requests)
    done = campaign.complete(
        planned, out, options.timeout, lambda: campaign.on_this_machine(planned, options.jobs)
    )
    reader = loaded_runs.Reader()
    found = [reader.read(out / label) for label in done.results if label not in done.failures]
    failures = [f"{label}: {why}" for label, why in done.failures.items()]
    return found, failures, f"{campaign.in_one_line(done)}; run directories: {out}"


def _first_seconds(
    stated: Publication, used: Iterable[LoadedRun], energy_model: str | None
) -> list[LoadedRun]:
    """Returns the runs' figures for the first seconds that statements are about. Reports runs that
    are too short."""
    model = None if energy_model is None else library.get(energy_model)
    wanted = dict.fromkeys(
        (one.scenario, one.client, one.first_s) for one in stated.first_seconds_cells
    )
    found = []
    for one in used:
        for scenario, client, first_s in wanted:
            if (one.scenario.name, one.client_name) == (
                scenario,
                client,
            ) and one.figures is not None:
                try:
                    found.append(first_seconds.of(one, first_s, model))
                except FigureError as error:
                    report_error(str(error))
    return found


def _given(options: argparse.Namespace) -> tuple[list[LoadedRun], list[str], str]:
    """Reads the given run directories. Returns the runs, the reasons of failures, and a summary
    line."""
    found = existing.read(options.there, existing.EnergyModels(options.energy_model))
    failures = [f"{one.run_dir}: {one.failure}" for one in found if one.failure]
    return found, failures, f"{len(found)} run directories, as they were there"


def _only_these(stated: Publication, found: Iterable[LoadedRun]) -> list[LoadedRun]:
    """Returns the runs of the publication's clients in its current scenarios. Reports runs that it
    leaves out, and runs made with different programs."""
    cells = {(cell.scenario, cell.client) for one in stated.checkable for cell in one.cells}
    names = {name for name, _ in cells}
    now = {name: fingerprint.of_scenario(stated.scenario(name)) for name in names}
    then = fingerprint.Hashes()
    used, others = [], 0
    for one in found:
        if (one.scenario.name, one.job.client) in cells and not one.job.live:
            key = then.of(one.scenario)
            others += key != now[one.scenario.name]
            if key == now[one.scenario.name]:
                used.append(one)
    if others:
        report_error(f"{others} runs are left out: their scenarios are not what they are now")
    if warning := loaded_runs.different_builds(used):
        report_error(warning)
    return used
