"""Section `ablations`: measures the gain of each part of the algorithm adaptive, by removing it
from the source."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from planted import Change, build
from rich.table import Table

from bench.algorithms import chosen_files
from bench.common import Bench, BenchError, Result, environment, percent, table

PARTS = {
    "further connections": Change(
        "internal/schedule/adaptive.go",
        "case !f.IsQueued() && g.count < g.Most:",
        "case false:",
    ),
    "a race at the start": Change(
        "internal/schedule/adaptive.go", "const startConnections = 6", "const startConnections = 1"
    ),
    "time for slow start": Change(
        "internal/schedule/adaptive.go", "case g.without > 0 && g.patience > 0:", "case false:"
    ),
    "giving connections up": Change(
        "internal/schedule/adaptive.go",
        "case f.fillsWithoutOne() && g.count > max(g.floor, 1):",
        "case false:",
    ),
    "the first bytes at once": Change(
        "internal/download/growth.go",
        "opensWithRange() bool { return p.view.isNew() }",
        "opensWithRange() bool { return false }",
    ),
    "an order with the first answer": Change(
        "internal/download/opening.go", "if isOpening && (", "if false && isOpening && ("
    ),
    "a bound in slow start": Change(
        "internal/download/connection.go", "return min(most, c.startRoom())", "return most"
    ),
    "a bound on the queue": Change(
        "internal/transfer/rates.go", "\tMostFirstByte = 2\n", "\tMostFirstByte = 1e6\n"
    ),
    "late bytes twice": Change(
        "internal/download/hedge.go", "if stealer.Rate == 0 ||", "if true || stealer.Rate == 0 ||"
    ),
    "help within a link": Change(
        "internal/download/steal.go", "if c.link.isQueued(now) {", "if true {"
    ),
    "asking again soon": Change(
        "internal/download/connect.go", "if !c.link.HasSeveral() || !c.suspect {", "if true {"
    ),
    "kept connections": Change(
        "internal/download/session.go",
        "spared := c.leaving &&",
        "spared := false &&",
    ),
    "new ones after an outage": Change(
        "internal/schedule/adaptive.go",
        "g.count = min(g.count+left, g.Most)\n\tif anew {",
        "if anew && left < 0 {",
    ),
    "what connecting shows": Change("internal/transfer/rates.go", "case shown > 0:", "case false:"),
    "a rate over two round trips": Change(
        "internal/transfer/rates.go", "max(PaceWindow, 2*rtt)", "PaceWindow"
    ),
    "what is behind a lost packet": Change(
        "internal/download/hole.go",
        "quantity.Bytes(outOfOrder-h.outOfOrder) * schedule.SegmentSize",
        "0 * quantity.Bytes(outOfOrder-h.outOfOrder) * schedule.SegmentSize",
    ),
}
SCENARIOS = (
    "static-7-66",
    "superagg-loss",
    "random-1-18",
    "random-1-37",
    "superagg-blackout",
    "random-1-09",
    "random-1-12",
    "random-1-19",
    "emptcp-256kb-good-good",
    "random-1-15",
    "random-1-16",
)

# As many as fit beside the parts in 80 columns.
COLUMNS = 3


def ablations(bench: Bench) -> Result:
    """The gain of each part of adaptive: times without the part beside those with it."""
    names = bench.scenarios or (SCENARIOS[8:] if bench.quick else SCENARIOS)
    files = chosen_files(bench, names)
    whole = {name: _download_s(bench, file, None) for name, file in files.items()}
    result: Result = {"whole_s": whole}
    without: dict[str, dict[str, float]] = {}
    for part, change in PARTS.items():
        directory = bench.work / part.replace(" ", "-")
        directory.mkdir(exist_ok=True)
        program = build(directory, change)
        without[part] = {name: _download_s(bench, file, program) for name, file in files.items()}
        bench.note(f"without {part}: {without[part]}")
    bench.say("adaptive, seed 1: how much longer a download takes without a part")
    for shown in tables(whole, without):
        bench.console.print(shown)
    return {**result, **without}


def tables(
    whole: Mapping[str, float], without: Mapping[str, Mapping[str, float]]
) -> Iterator[Table]:
    """Yields tables of each scenario's time, and how much longer it takes without each part, a few
    scenarios at a time."""
    for first in range(0, len(whole), COLUMNS):
        names = tuple(whole)[first : first + COLUMNS]
        shown = table("without", *names, gap=1)
        shown.add_row("nothing, s", *(f"{whole[name]:.3f}" for name in names))
        for part, took in without.items():
            shown.add_row(
                part, *(f"{percent(took[name] / whole[name] - 1, 1)} %" for name in names)
            )
        yield shown


def _download_s(bench: Bench, scenario: str, program: Path | None) -> float:
    """Returns the download time by adaptive with this build of multilink. Raises BenchError if it
    fails."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "linklab",
            "run",
            scenario,
            "-a",
            "adaptive",
            "--json",
            "--out",
            str(bench.work / "ablations"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(**({"LINKLAB_MULTILINK": str(program)} if program else {})),
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"{scenario} by {program or 'multilink'} ended with {done.returncode}")
    run_dir = Path(json.loads(done.stdout)["run_dir"])
    summary = json.loads((run_dir / "client.json").read_text())
    return float(summary["download_ns"]) / 1e9
