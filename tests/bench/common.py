"""Shares calls of the command line, progress, tables and verdicts between the benchmark's sections."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from conftest import REPOSITORY, command, environment
from linklab.display.progress import progress
from rich.console import Console
from rich.table import Table

CORES = len(os.sched_getaffinity(0))

Result = dict[str, Any]
"""A section's results, as plain data for `--json`."""


class BenchError(RuntimeError):
    """A call that the benchmark needs has failed: a crash, not a missed target."""


@dataclass(frozen=True)
class Done:
    """Holds a finished `linklab` command: its JSON, and the duration of the call."""

    json: Any
    seconds: float

    @property
    def run_dir(self) -> Path:
        """The directory of the run."""
        return Path(self.json["run_dir"])


@dataclass
class Bench:
    """Holds one benchmark run: its console, its directory, and whether it hurries.

    `runs`, `scenarios`, `clients` and `jobs` select what section `algorithms` runs, None for
    its own choice. `every_seed` makes it run all seeds of all clients.
    """

    console: Console
    work: Path
    quick: bool
    runs: int | None
    scenarios: Sequence[str] | None
    clients: Sequence[str] | None
    jobs: int | None
    every_seed: bool
    _errors: Console = field(init=False, default_factory=lambda: Console(stderr=True))
    _running: set[subprocess.Popen[str]] = field(init=False, default_factory=set)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def linklab(self, *words: object) -> Done:
        """Calls `linklab` with `--json`. Raises BenchError if it fails."""
        argv = command(*self._with_options(words))
        begun = time.monotonic()
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        with self._lock:
            self._running.add(process)
        try:
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        seconds = time.monotonic() - begun
        if not out or (process.returncode != 0 and words[0] != "compare"):
            why = _reason(json.loads(out)) if out else err.strip()
            raise BenchError(f"linklab {' '.join(map(str, words))}: {why}")
        return Done(json.loads(out), seconds)

    def _with_options(self, words: Sequence[object]) -> list[object]:
        """Inserts `--json` and the directory of runs, before a user's command if there is one."""
        at = words.index("--") if "--" in words else len(words)
        return [*words[:at], "--json", "--out", self.work / "runs", *words[at:]]

    def all(
        self, what: str, calls: Sequence[Sequence[object]], *, parallel: int = CORES
    ) -> list[Done]:
        """Calls `linklab` with each list of words, `parallel` at a time. Returns the results in
        their order."""
        results: dict[int, Done] = {}
        pool = ThreadPoolExecutor(parallel)
        with progress() as bar:
            task = bar.add_task(what, total=len(calls))
            try:
                futures = {
                    pool.submit(self.linklab, *words): number for number, words in enumerate(calls)
                }
                for future in as_completed(futures):
                    results[futures[future]] = future.result()
                    bar.update(task, advance=1)
                    if bar.disable:
                        self.note(f"{what}: {len(results)} of {len(calls)}")
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                with self._lock:
                    for process in self._running:
                        process.terminate()
                raise
            finally:
                pool.shutdown()
        return [results[number] for number in range(len(calls))]

    def campaign(self, name: str, plan: Mapping[str, Any]) -> Result:
        """Runs a campaign, except runs that exist. Returns the JSON of `linklab campaign --json`."""
        file = self.work / f"{name}.yaml"
        file.write_text(yaml.safe_dump({"name": name, **plan}))
        words: list[object] = ["campaign", file, "--out", self.work / name, "--json"]
        words += ["--report", self.work / f"{name}.html"]
        words += ["--jobs", self.jobs] if self.jobs else []
        done = subprocess.run(
            command(*words),
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=REPOSITORY,
            check=False,
        )
        if not done.stdout:
            raise BenchError(f"linklab campaign ended with {done.returncode}")
        report: Result = json.loads(done.stdout)
        return report

    def note(self, text: str) -> None:
        """Prints a line of progress on standard error."""
        self._errors.print(text, style="dim", highlight=False)

    def say(self, text: str = "") -> None:
        """Prints a line of the report."""
        self.console.print(text, highlight=False)

    def markdown(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints a table in Markdown."""
        for row in (heads, ["---"] * len(heads), *rows):
            self.console.print(f"| {' | '.join(row)} |", highlight=False, soft_wrap=True)


def _reason(report: Any) -> str:
    """Returns why a run or a user's command failed."""
    said = Path(report["run_dir"], "client.err")
    words = said.read_text(errors="replace").strip() if said.exists() else ""
    return str(report.get("error") or words or f"exit code {report.get('exit_code')}")


def table(*columns: str, left: int = 1, gap: int = 2) -> Table:
    """Returns a table whose first `left` columns are words and the others figures, `gap` apart."""
    made = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for number, title in enumerate(columns):
        made.add_column(title, justify="left" if number < left else "right", no_wrap=True)
    return made


def target(text: str, met: bool) -> str:
    """Returns `target X: met` or `missed`, in colour on a terminal."""
    style, word = ("green", "met") if met else ("red", "missed")
    return f"[{style}]target {text}: {word}[/{style}]"


def percent(ratio: float, digits: int = 2) -> str:
    """Formats a ratio as percent with its sign, never `-0.00`."""
    rounded = round(ratio * 100, digits) + 0.0
    return f"{rounded:+.{digits}f}" if rounded else f"{0:.{digits}f}"
