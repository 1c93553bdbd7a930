"""`linklab plot`: a scenario or a run, drawn in the terminal and as a PNG."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from linklab import plotting, scenario
from linklab.models.layer import LinkState
from linklab.plotting import Plot

EPILOG = """\
examples:
  linklab plot hs-s7                        what its links could carry, in the terminal
  linklab plot tm --seed 3 -o tm.png        as a picture too
  linklab plot runs/hs-s7-alg3-seed1        what a run's links could carry and did"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `linklab plot`, but for `--seed`."""
    parser.add_argument("what", metavar="SCENARIO|RUN", help="a scenario, or a run directory")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="how much of a scenario (default: the oracle's)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.png", help="write a picture")
    parser.add_argument("--no-terminal", action="store_true", help="draw nothing in the terminal")
    parser.add_argument("--json", action="store_true", help="print what is drawn for machines")


def run(options: argparse.Namespace) -> int:
    """Draws; ScenarioError for an unknown scenario, ValueError for a time that is none."""
    if options.seconds is not None and not 0 < options.seconds <= plotting.MAX_SECONDS:
        raise ValueError(f"--seconds {options.seconds:g}; allowed: up to {plotting.MAX_SECONDS:g}")
    directory = Path(options.what)
    if (directory / "links.jsonl").is_file():
        plot = _of_run(directory)
    else:
        plot = plotting.of_scenario(scenario.find(options.what), options.seed, options.seconds)
    if options.json:
        print(json.dumps(plotting.to_json(plot)))
    elif not options.no_terminal:
        from linklab import plot_terminal

        columns = shutil.get_terminal_size((80, 24)).columns
        print(plot_terminal.text(plot, min(columns, 160) - 1), end="")
    if options.output is not None:
        from linklab import plot_png

        plot_png.draw(plot, options.output)
    return 0


def _of_run(directory: Path) -> Plot:
    states = [
        (line["t_s"], line["link"], LinkState(**{name: line[name] for name in LinkState.__slots__}))
        for line in _lines(directory / "links.jsonl")
    ]
    sent: dict[str, list[tuple[float, int]]] = {}
    for line in _lines(directory / "queues.jsonl"):
        if line["direction"] == "down":
            sent.setdefault(line["link"], []).append((line["t_s"], line["sent_bytes"]))
    summary = directory / "summary.json"
    download_s = json.loads(summary.read_text())["download_s"] if summary.exists() else None
    return plotting.of_run(directory.resolve().name, states, sent, download_s)


def _lines(file: Path) -> list[dict[str, Any]]:
    """The whole lines of a file: the last one may be under way."""
    whole = file.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]
