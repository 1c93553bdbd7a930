"""Implements `linklab validate`: checks scenario files."""

from __future__ import annotations

import argparse
import json

from linklab import scenario
from linklab.commands.options import add_json
from linklab.runs import clients
from linklab.schema.document import ScenarioError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `linklab validate`."""
    parser.add_argument("files", nargs="+", metavar="FILE")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Checks the files. Returns 0 if all are valid, else 2."""
    results = []
    for file in options.files:
        try:
            clients.further(scenario.find(file), None)
            results.append({"file": file, "valid": True, "error": None})
        except (ScenarioError, OSError) as error:
            results.append({"file": file, "valid": False, "error": str(error)})
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for result in results:
            print(result["error"] or f"{result['file']}: valid")
    return 0 if all(result["valid"] for result in results) else 2
