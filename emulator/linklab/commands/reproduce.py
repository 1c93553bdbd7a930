"""`linklab reproduce`: a publication's figures beside the same figures measured."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from rich.console import Console

from linklab.commands import running
from linklab.commands.options import add_repeats, add_run, add_side_by_side
from linklab.core.complaint import complain
from linklab.report import reproduction, tables
from linklab.runs.runner import Request
from linklab.scenario import find

EPILOG = "example:\n  linklab reproduce thesis --runs 5      half as many as the thesis made"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `linklab reproduce`."""
    add_run(parser)
    parser.add_argument("publication", choices=tuple(reproduction.PUBLICATIONS))
    add_repeats(parser, 10, ", of which the median counts")
    add_side_by_side(parser, "--parallel", "as for compare")


def run(options: argparse.Namespace) -> int:
    """A publication's rows beside the same rows measured; 1 if any run failed.

    Cells outside their tolerance are a finding and no failure.
    """
    scenarios = [find(name) for name in reproduction.PUBLICATIONS[options.publication]]
    wanted = [(scenario, row.algorithm) for scenario in scenarios for row in scenario.published]
    running.require([name for _, name in wanted], options.place, options.clock)
    requests = [
        Request(scenario, name, options.seed + n, shift_s=options.shift)
        for n in range(options.runs)
        for scenario, name in wanted
    ]
    series = running.run_series(requests, options, "reproduce")
    compared = {
        one.name: series.comparison(one, [row.algorithm for row in one.published])
        for one in scenarios
    }
    cells = reproduction.cells(scenarios, compared)
    if options.json:
        said = {
            "publication": options.publication,
            **series.to_json(),
            "cells": [asdict(cell) for cell in cells],
            "calibration": asdict(reproduction.count(cells, calibration=True)),
            "outcomes": asdict(reproduction.count(cells, calibration=False)),
            "failures": series.failures,
        }
        print(json.dumps(said, indent=2))
    else:
        tables.show_reproduction(cells, Console())
        for failure in series.failures:
            complain(failure)
        print(series.in_one_line())
    return 1 if series.failures else 0
