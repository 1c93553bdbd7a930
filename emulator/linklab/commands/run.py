"""Implements `linklab run`: runs one algorithm in one scenario."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from linklab.api import requests, series
from linklab.api.settings import CLIENT
from linklab.commands import late_events, running
from linklab.commands.options import LINKS, PCAP, RUN, SERVER, add, scenario_of
from linklab.core import units
from linklab.core.error_report import report_error
from linklab.runs import clients, workload_figures
from linklab.runs.run_figures import RunFigures
from linklab.runs.runner import RunRequest

EPILOG = """\
examples:
  linklab run hs-s7 -a alg3
  linklab run --link wifi=20mbit,30ms,1% --link lte=fast-4g"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, *RUN)
    add(parser, "--energy-model", more="instead of the scenario's")
    add(parser, *SERVER, *PCAP, *LINKS)
    parser.add_argument(
        "scenario", nargs="?", help="a name from `linklab scenarios`, or a YAML file"
    )
    parser.add_argument(
        "-a",
        "--algorithm",
        default=CLIENT,
        metavar="NAME",
        help=f"{', '.join(clients.names(clients.USUAL_LINKS))} (default {CLIENT})",
    )


def run(options: argparse.Namespace) -> int:
    """Runs the algorithm. Returns 1 if the run failed, else 0."""
    scenario = scenario_of(options, options.scenario)
    how, where = running.run_options(options), running.settings(options)
    request = requests.for_client(scenario, options.algorithm, how, where)
    finished = running.run_one(request, options)
    figures = series.figures_of(finished)
    failed = isinstance(figures, str)
    if options.json:
        said = {
            "scenario": request.scenario.name,
            "algorithm": request.client,
            "seed": request.seed,
            "run_dir": str(finished.run_dir),
            "wall_s": finished.wall_s,
            "error": figures if isinstance(figures, str) else None,
            "figures": None if isinstance(figures, str) else asdict(figures),
            "notes": [] if isinstance(figures, str) else _notes(request, figures),
        }
        print(json.dumps(said, indent=2))
        return 1 if failed else 0
    if isinstance(figures, str):
        report_error(f"{request.label}: {figures}")
        print(f"run directory: {finished.run_dir}", file=sys.stderr)
        return 1
    print(
        f"{request.label}: {figures.download_s:.3f} s"
        f"{figures.goodput_text}{figures.efficiency_text}"
    )
    for key, value in (figures.workload or {}).items():
        print(f"  {workload_figures.in_words(key, value)}")
    longest = max(5, *map(len, figures.links))
    for name, link in figures.links.items():
        done = "" if link.finish_s is None else f", done at {link.finish_s:.3f} s"
        carried = f"{link.bytes / 1e6:7.1f} MB ({units.percent(link.share)})"
        print(f"  {name:<{longest}} {carried}{done}")
    for name, queues in (figures.queues or {}).items():
        queue = queues.get(scenario.workload.direction)
        if queue is not None and queue.sojourn is not None:
            print(f"  {name:<{longest}} {queue.words}")
    for client in figures.clients or []:
        goodput = "" if client.goodput_bps is None else f", {client.goodput_bps / 1e6:.1f} Mbit/s"
        print(f"  {client.title}: {client.download_s:.3f} s{goodput}")
    for flow in figures.traffic or []:
        print(f"  flow {flow.title}: {flow.words}")
    for place, shared in (figures.shares or {}).items():
        print(f"  shares of {place}: {shared.words}")
    for who, looked in (figures.processes or {}).items():
        one = looked.get("1 Hz", looked["10 Hz"])
        memory = "" if one.memory_bytes is None else f", {one.memory_bytes / 1e6:.1f} MB"
        print(
            f"{who}: load {units.percent(one.load_median)} of a core (p05 {units.percent(one.load_p05)}, p90 "
            f"{units.percent(one.load_p90)}), {one.cpu_s:.2f} s of processor time{memory}"
        )
    if figures.energy is not None:
        cost = figures.energy
        print(
            f"energy by {cost.model}: {cost.joules:.1f} J, {cost.tail_j:.1f} J of it after the "
            f"download;\n  {cost.joules_per_byte * 1e6:.3f} J/MB, mean {cost.mean_w:.2f} W, "
            f"peak {cost.peak_w:.2f} W"
        )
    for note in _notes(request, figures):
        print(note)
    print(f"run directory: {finished.run_dir}")
    return 0


def _notes(request: RunRequest, figures: RunFigures) -> list[str]:
    """Says which events come after the end of all downloads."""
    lasted_s = max([figures.download_s, *(one.download_s for one in figures.clients or [])])
    end_s = request.shift_s + lasted_s
    late = late_events.after(request.scenario, end_s)
    return late_events.in_words(late, f"the end of the run ({end_s:.3f} s)")
