"""Measures what linklab promises, and says beside each figure whether its target is met.

usage: python -m bench [SECTION…] [--quick] [--json FILE] [--keep DIR]
       python -m bench algorithms [--runs N] [--every-seed] [--scenarios NAME,…]
                                  [--contestants NAME,…] [--jobs N]

`make bench` runs every section but those in `ASKED`. Nothing here fails because a target is missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from linklab.commands.options import count
from linklab.core.limits import MAX_RUNS, MAX_SIDE_BY_SIDE
from rich.console import Console

from bench.algorithms import algorithms
from bench.common import CORES, Bench, BenchError, Result
from bench.fairness import fairness
from bench.held_out import held_out
from bench.http3 import http3
from bench.speed import speed

SECTIONS: dict[str, Callable[[Bench], Result]] = {
    section.__name__: section
    for section in (
        speed,
        algorithms,
        held_out,
        fairness,
        http3,
    )
}
ASKED = ("algorithms", "held_out", "http3")
"""Sections that only run when they are named. All algorithms in all scenarios take hours. With `--keep`,
`algorithms` keeps the runs that it finds."""
UNASKED = tuple(name for name in SECTIONS if name not in ASKED)


def _summary(section: Callable[[Bench], Result]) -> str:
    return (section.__doc__ or "").splitlines()[0]


def _arguments() -> argparse.Namespace:
    listed = "\n".join(f"  {name:<14} {_summary(section)}" for name, section in SECTIONS.items())
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measures what linklab promises; a missed target is no error.",
        epilog=f"sections (all but {', '.join(ASKED)} unless named):\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="what to measure")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="leave scenarios and run directories there"
    )
    parser.add_argument(
        "--runs",
        type=count(MAX_RUNS),
        metavar="N",
        help="algorithms, held_out: seeds 1 to N (5, 3)",
    )
    parser.add_argument(
        "--every-seed", action="store_true", help="algorithms: also of those far behind with one"
    )
    for what, users in (("scenarios", "algorithms"), ("contestants", "algorithms")):
        parser.add_argument(
            f"--{what}", type=_words, metavar="NAMES", help=f"{users}: these {what}, not all"
        )
    parser.add_argument(
        "--jobs", type=count(MAX_SIDE_BY_SIDE), metavar="N", help="algorithms: runs at a time"
    )
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section is called {unknown[0]!r}; there are: {', '.join(SECTIONS)}")
    return options


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _machine() -> Result:
    return {
        "started_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cores": CORES,
        "load_average": os.getloadavg(),
    }


def _measure(bench: Bench, names: list[str], json_file: Path | None) -> None:
    """Runs the sections. Writes the results after each, in case a later one crashes."""
    figures: Result = {"machine": _machine(), "quick": bench.quick, "sections": {}}
    for name in names:
        section = SECTIONS[name]
        bench.console.rule(f"[bold]{name}[/bold]", align="left")
        bench.say(_summary(section))
        begun = time.monotonic()
        result = section(bench)
        took_s = time.monotonic() - begun
        figures["sections"][name] = {"took_s": took_s, **result}
        bench.say(f"[dim]{name} took {took_s:.0f} s[/dim]\n")
        if json_file:
            json_file.write_text(json.dumps(figures, indent=2) + "\n")


def main() -> int:
    """Runs the benchmark. Returns 0, or 1 if a run crashed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = _arguments()
    names = options.sections or list(UNASKED)
    with tempfile.TemporaryDirectory(prefix="linklab-bench-") as temporary:
        work = options.keep or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(
            Console(),
            work.resolve(),
            quick=options.quick,
            runs=options.runs,
            scenarios=options.scenarios,
            clients=options.contestants,
            jobs=options.jobs,
            every_seed=options.every_seed,
        )
        try:
            _measure(bench, names, options.json)
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("bench: interrupted", file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
