"""Implements `linklab scenarios`: lists scenarios and their best possible times."""

from __future__ import annotations

import argparse
import json

from linklab import scenario
from linklab.commands.options import add
from linklab.report import listing, publication
from linklab.scenario import Scenario, reference

EPILOG = "examples:\n  linklab scenarios\n  linklab scenarios emptcp-on-off"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        nargs="*",
        metavar="SCENARIO",
        help="scenarios to describe (default: a short list of all)",
    )
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="compute each one's best possible time, which takes a while for all",
    )
    parser.add_argument("--keys", action="store_true", help="all keys of a scenario, in Markdown")
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Lists all scenarios, or describes some."""
    if options.keys:
        print(reference.markdown(), end="")
        return 0
    names = list(dict.fromkeys(options.names))
    chosen = [scenario.find(name) for name in names] or scenario.list_all()
    times = _oracles(chosen) if options.oracle or (names and options.json) else None
    if options.json:
        stated = {one.name: publication.about(one) for one in chosen} if names else {}
        print(json.dumps(listing.to_json(chosen, times, stated), indent=2, allow_nan=False))
    elif names:
        print("\n\n".join(listing.details(one, publication.about(one)) for one in chosen))
    else:
        print(listing.overview(chosen, times))
    return 0


def _oracles(chosen: list[Scenario]) -> dict[str, float]:
    """Returns the scenarios' oracle times, with a progress bar. All that ship take some seconds."""
    from linklab.display.progress import progress  # rich is slow to load.

    with progress() as bar:
        task = bar.add_task("oracle", total=len(chosen))
        return listing.oracles(chosen, lambda done: bar.update(task, completed=done))
