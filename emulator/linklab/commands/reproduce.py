"""Implements `linklab reproduce`: compares each statement of a publication with runs."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from linklab.api import environment
from linklab.commands import campaign, existing, report
from linklab.commands.options import UsageError, add, count, given
from linklab.core.error_report import report_error
from linklab.core.limits import MAX_RUNS
from linklab.display import printing
from linklab.energy import library
from linklab.regression import fingerprint
from linklab.report import (
    arithmetic,
    dependence,
    dependence_showing,
    publication,
    reproduction,
    reproduction_showing,
    unknowns,
)
from linklab.report.publication import Publication
from linklab.report.unknowns import OURS, Setting
from linklab.runs import clients, first_seconds, loaded_runs, run_energy
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.matrix import Campaign
from linklab.runs.run_figures import FigureError
from linklab.runs.runner import RunRequest
from linklab.scenario import ScenarioError, to_yaml

if TYPE_CHECKING:
    from distributed import Client

EPILOG = """\
Complete runs in --out are kept: after Ctrl-C call it once more.

examples:
  linklab reproduce thesis                  all of it: 510 runs
  linklab reproduce mptcp --runs 5
  linklab reproduce thesis --from runs/campaign-thesis   existing runs only
  linklab reproduce mptcp --runs 1 --unknowns   what it leaves open, too

Processor and memory need the real clock, which another command runs:
  linklab compare hs-s6 hs-s7 ls ts tm ao --clock real --out runs/real
  linklab reproduce thesis --from runs/reproduce-thesis runs/real/*"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, "--processor")
    parser.add_argument("publication", choices=publication.names())
    parser.add_argument(
        "--runs",
        type=count(MAX_RUNS),
        metavar="N",
        help="runs of each, with seeds SEED…SEED+N-1 (default: as in the publication). "
        "Clear verdicts need at least 5",
    )
    add(parser, "--seed")
    parser.set_defaults(seed=None)  # `given` needs None as default.
    parser.add_argument(
        "--unknowns",
        action="store_true",
        help="also try what the publication leaves open: each value alone, then a Latin square of "
        "all. Says which statements hold always, never, or depend on what",
    )
    parser.add_argument(
        "--from",
        dest="there",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="use these run directories, or those in them, and run nothing",
    )
    each = "workers on this machine, each on a core of its own (default: all)"
    add(parser, "--jobs", help=each)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="for run directories (runs/reproduce-NAME)"
    )
    add(parser, "--timeout")
    add(parser, "--energy-model", more="instead of the scenarios'")
    add(parser, "--report", "--json")


def run(options: argparse.Namespace) -> int:
    """Runs what is missing and checks every statement. Returns 1 if a run failed.

    A statement that does not hold is a result, not a failure.
    """
    unused = given(options, "runs", "seed", "jobs", "out", "timeout")
    if options.there and unused:
        raise UsageError(f"--from runs nothing: leave out {unused[0]}")
    stated = publication.find(options.publication)
    out = options.out or Path("runs", f"reproduce-{stated.name}")
    report.require_place(options.report, out)
    tried = unknowns.settings(stated.unknowns if options.unknowns else ())
    if options.unknowns and len(tried) == 1:
        raise UsageError(f"{stated.name} lists no unknowns with values to try")
    with_values = {one.name: stated.with_values(one.values.values()) for one in tried}
    _refuse_idle(stated, tried, with_values)
    found, failures, line = (
        _given(options) if options.there else _made(options, list(with_values.values()), out)
    )
    models = run_energy.models(options.energy_model)
    read = {name: _Read(one, found, options.energy_model) for name, one in with_values.items()}
    ours = read[OURS]
    _report_left_out(stated, found, [run for one in read.values() for run in one.used])
    skill = reproduction.skill(
        ours.checked, ours.cells, arithmetic.beside(stated, ours.cells, models)
    )
    told = dependence.dependences(tried, {name: one.checked for name, one in read.items()})
    shown = (stated, tried, told) if options.unknowns else None
    notes = clients.notes(dict.fromkeys(one.client_name for one in ours.used))
    if options.json:
        said = reproduction_showing.to_json(stated, ours.checked, skill)
        counts = {"runs": len(ours.used), "failures": failures, "notes": notes}
        hang = dependence_showing.to_json(*shown) if shown else {}
        print(json.dumps({**said, **counts, **hang}, indent=2))
    else:
        console = printing.console()
        reproduction_showing.show(ours.checked, skill, console)
        if shown:
            dependence_showing.show(*shown, console)
        for note in notes:
            reproduction_showing.tell(note, console)
        for failure in failures:
            report_error(failure)
        print(line)
    report.of_directories(
        [one.run_dir for one in ours.used],
        options.report,
        options.energy_model,
        unknowns=shown and dependence_showing.rows(*shown),
    )
    return 1 if failures else 0


class _Read:
    """Holds the runs that a setting uses, and its verdicts."""

    def __init__(
        self, stated: Publication, found: Iterable[LoadedRun], energy_model: str | None
    ) -> None:
        self.used = _only_these(stated, found)
        begun = _first_seconds(stated, self.used, energy_model)
        try:
            self.cells = reproduction.by_cell([*self.used, *begun])
        except ValueError as error:
            raise UsageError(str(error)) from None
        self.checked = reproduction.check(stated, self.cells)


def _refuse_idle(
    stated: Publication, tried: Sequence[Setting], with_values: Mapping[str, Publication]
) -> None:
    """Refuses a value that changes no scenario. Raises ScenarioError."""
    names = dict.fromkeys(cell.scenario for cell in stated.cells)
    for one in tried:
        now = with_values[one.name]
        if one.values and all(now.scenario(name) == stated.scenario(name) for name in names):
            (value, *_) = one.values.values()
            raise ScenarioError(f"{value.place}: changes no scenario of the statements")


def _made(
    options: argparse.Namespace, settings: Sequence[Publication], out: Path
) -> tuple[list[LoadedRun], list[str], str]:
    """Makes the runs that the statements need, as a campaign for each setting: the first in `out`, the
    others below it, of scenarios that no setting before has. Returns them, the reasons of failures, and
    a summary line."""
    ours = settings[0]
    environment.require([cell.client for cell in ours.cells], "guest", "virtual")
    seed = 1 if options.seed is None else options.seed
    known: set[str] = set()
    found, failures, lines = [], [], []
    shared: list[Client] = []
    with contextlib.ExitStack() as stack:
        for setting in settings:
            scenarios = {cell.scenario: setting.scenario(cell.scenario) for cell in setting.cells}
            keys = {name: to_yaml(one) for name, one in scenarios.items()}
            energies = {
                name: run_energy.model_for(one, options.energy_model)
                for name, one in scenarios.items()
            }
            requests = tuple(
                RunRequest(
                    scenarios[cell.scenario], cell.client, seed + n, energy=energies[cell.scenario]
                )
                for n in range(options.runs or setting.runs)
                for cell in setting.cells
                if keys[cell.scenario] not in known
            )
            known.update(keys.values())
            if not requests:
                continue
            where = out if setting is ours else out / "unknowns" / _name(setting)
            path = publication.DIRECTORY / f"{setting.name}.yaml"
            planned = Campaign(f"reproduce-{setting.name}", setting.title, path, requests)
            begin = functools.partial(_workers, stack, shared, planned, options.jobs)
            done = campaign.complete(planned, where, options.timeout, begin)
            reader = loaded_runs.Reader()
            found += [
                reader.read(where / label) for label in done.results if label not in done.failures
            ]
            failures += [f"{label}: {why}" for label, why in done.failures.items()]
            lines.append(f"{campaign.in_one_line(done)}; run directories: {where}")
    return found, failures, "\n".join(lines)


def _name(setting: Publication) -> str:
    return "+".join(one.name for one in setting.values)


def _workers(
    stack: contextlib.ExitStack, shared: list[Client], planned: Campaign, jobs: int | None
) -> AbstractContextManager[Client]:
    """Returns the workers that all settings share. Starts them for the first one that needs any."""
    if not shared:
        shared.append(stack.enter_context(campaign.on_this_machine(planned, jobs)))
    return contextlib.nullcontext(shared[0])


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
    """Returns the runs of the publication's clients in its scenarios, as they are in this setting."""
    cells = {(cell.scenario, cell.client) for one in stated.statements for cell in one.cells}
    names = {name for name, _ in cells}
    now = {name: fingerprint.of_scenario(stated.scenario(name)) for name in names}
    then = fingerprint.Hashes()
    return [
        one
        for one in found
        if (one.scenario.name, one.job.client) in cells
        and not one.job.live
        and then.of(one.scenario) == now[one.scenario.name]
    ]


def _report_left_out(
    stated: Publication, found: Sequence[LoadedRun], used: list[LoadedRun]
) -> None:
    """Reports runs that no setting has, and runs made with different programs."""
    cells = {(cell.scenario, cell.client) for one in stated.statements for cell in one.cells}
    kept = set(map(id, used))
    others = [
        one
        for one in found
        if (one.scenario.name, one.job.client) in cells and not one.job.live and id(one) not in kept
    ]
    if others:
        report_error(f"{len(others)} runs are left out: their scenarios are not what they are now")
    if warning := loaded_runs.different_builds(used):
        report_error(warning)
