"""Implements `linklab export`: writes run directories as tables for other programs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from linklab.analysis.run import LoadError
from linklab.analysis.schemas import schemas
from linklab.analysis.tables import FORMATS, TABLES, load
from linklab.commands.options import UsageError

EPILOG = """\
tables, a row each: runs, links (of a run), workload (a figure of a page, player
and the like), requests, samples (of the client, every 100 ms), states (of a
link), queues (counters of a link), queue-figures, traffic (flows of others),
clients (of several), shares (of a link), events, power (over time, where an
energy model is named), processes (what client and server used, on the
real clock), process-samples

examples:
  linklab export runs/20260101-120000-compare -o runs.parquet
  linklab export runs/* --table requests -o requests.csv
  python -c 'import linklab; print(linklab.load("runs").frame("links"))'"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUN",
        help="run directories, or directories with runs",
    )
    parser.add_argument(
        "--table", choices=TABLES, default="runs", metavar="TABLE", help="default: runs"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--output", type=Path, metavar="FILE", help="FILE.csv or FILE.parquet")
    what.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON schemas of the files of a run directory",
    )


def run(options: argparse.Namespace) -> int:
    """Writes the table. Raises UsageError if there is nothing to write."""
    if options.schema:
        print(json.dumps(schemas(), indent=2))
        return 0
    if not options.runs:
        raise UsageError("no run directory is named")
    write = FORMATS.get(options.output.suffix)
    if write is None:
        raise UsageError(f"-o {options.output}: allowed are names that end in {', '.join(FORMATS)}")
    try:
        written = write(load(*options.runs).rows(options.table), options.output)
    except LoadError as error:
        raise UsageError(str(error)) from error
    print(f"{options.output}: {written} rows of {options.table}")
    return 0
