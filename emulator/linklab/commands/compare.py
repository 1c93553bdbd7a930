"""Implements `linklab compare`: runs several algorithms in the same scenarios."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from linklab.api import requests
from linklab.api.functions import USUAL
from linklab.commands import compare_recordings, report, running
from linklab.commands.options import LINKS, RUN, SERVER, UsageError, add, count, scenario_of
from linklab.core.limits import MAX_RUNS
from linklab.display import printing
from linklab.field import recording
from linklab.report import tables
from linklab.runs import clients
from linklab.scenario import Scenario

EPILOG = """\
examples:
  linklab compare hs-s7 hs-s6
  linklab compare static-80-50 -a alg3,mptcp,aria2-8 --runs 3
  linklab compare hs-s7 --server './my-server --port {port} {directory}'
  linklab compare results/1 --report r.html    of multilink get --run-dir

`ener. J` is the energy until a run's radios sleep. A model's share for the
phone itself counts for all clients, until the last radio sleeps. So the column
depends on the clients compared. `linklab energy RUN` shows a run by itself."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, *RUN)
    add(parser, "--energy-model", more="instead of the scenario's")
    add(parser, *SERVER)
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="scenario",
        help="scenarios, or directories of recorded downloads, which the lab repeats",
    )
    add(parser, *LINKS, "--kind")
    parser.add_argument(
        "-a",
        "--algorithms",
        metavar="NAMES",
        help=f"comma-separated; {'; '.join(map(_group, clients.GROUPS))} (default {USUAL}; "
        "for recordings: the recorded algorithm)",
    )
    parser.add_argument(
        "--runs",
        type=count(MAX_RUNS),
        default=1,
        metavar="N",
        help="runs of each with seeds SEED…SEED+N-1; the table shows medians (default 1)",
    )
    add(parser, "--report")
    each = "guests at a time, each on a core of its own (default: all; 1 on the real clock)"
    add(parser, "--parallel", help=each)


def _group(name: str) -> str:
    """Explains a word that stands for several clients."""
    return f"`{name}`: {', '.join(clients.GROUPS[name](clients.USUAL_LINKS))}"


def run(options: argparse.Namespace) -> int:
    """Runs every client in every scenario, with `--runs` seeds each. Returns 1 if any run failed."""
    report.require_place(options.report, options.out)
    if any(recording.is_in(Path(name)) for name in options.scenarios):
        return compare_recordings.run(options)
    if options.kind:
        raise UsageError("--kind: a scenario says what its links are; allowed: with recordings")
    scenarios: list[Scenario] = []
    given = [None] if options.link else options.scenarios or [None]
    if options.link and options.scenarios:
        raise UsageError("which links? allowed: scenarios, or --link, but not both")
    for scenario in (scenario_of(options, name) for name in given):
        if scenario not in scenarios:  # A scenario named twice is run once.
            scenarios.append(scenario)
    wanted = USUAL if options.algorithms is None else options.algorithms
    plan = [(scenario, requests.clients_of(wanted, scenario)) for scenario in scenarios]
    series = running.run_plan(plan, options)
    comparisons = [series.comparison(scenario, names) for scenario, names in plan]
    if options.json:
        compared = [tables.to_json(one) for one in comparisons]
        print(json.dumps({**running.to_json(series, options), "comparisons": compared}, indent=2))
    else:
        console = printing.console()
        for one in comparisons:
            tables.show(one, console)
        print(running.in_one_line(series, options))
    report.of_directories([series.parent], options.report)
    return 1 if series.failures else 0
