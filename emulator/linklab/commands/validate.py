"""Implements `linklab validate`: checks scenario files."""

from __future__ import annotations

import argparse
import json
from typing import Any

from linklab import scenario
from linklab.commands import late_events
from linklab.commands.options import add
from linklab.runs import clients
from linklab.schema.document import ScenarioError


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Checks the files. Returns 0 if all are valid, else 2."""
    results: list[dict[str, Any]] = []
    for file in options.files:
        try:
            read = scenario.find(file)
            clients.further(read, None)
            results.append({"file": file, "valid": True, "error": None, "notes": _notes(read)})
        except (ScenarioError, OSError) as error:
            results.append({"file": file, "valid": False, "error": str(error), "notes": []})
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for result in results:
            print(result["error"] or f"{result['file']}: valid")
            for note in result["notes"]:
                print(f"  {note}")
    return 0 if all(result["valid"] for result in results) else 2


def _notes(read: scenario.Scenario) -> list[str]:
    least_s = late_events.least_s(read)
    when = f"the earliest end of a run ({least_s:.3f} s)"
    return late_events.in_words(late_events.after(read, least_s), when)
