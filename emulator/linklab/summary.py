"""Reads a run directory and says what the run came to, in `summary.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from linklab import stalls, statistics
from linklab.job import read
from linklab.outcome import Outcome
from linklab.records import ClientRecord, QueueRecord, RecordError, Tail
from linklab.scenario import load
from linklab.statistics import FigureError, RunFigures

R = TypeVar("R", ClientRecord, QueueRecord)


def figures_of(run_dir: Path) -> RunFigures:
    """The figures of an executed run directory; FigureError saying why there are none."""
    scenario = load(run_dir / "scenario.yaml", any_name=True)
    job = read(run_dir)
    outcome = outcome_of(run_dir)
    client = run_dir / "client.json"
    if client.exists():
        told = _records(run_dir / "client.jsonl", ClientRecord)
        return replace(
            statistics.figures(scenario, job.seed, statistics.parse_client(client.read_bytes())),
            stalled_s=stalls.of_client(told) if told else None,
        )
    if outcome.exit_code != 0:
        raise FigureError(f"the client ended with {outcome.exit_code}: {_last_words(run_dir)}")
    if job.contestant is not None and outcome.output_bytes != scenario.payload.size_bytes:
        raise FigureError(
            f"{outcome.output_bytes or 0} bytes arrived instead of {scenario.payload.size_bytes}"
        )
    elapsed_s = outcome.elapsed_ns / 1e9
    sampled = _records(run_dir / "queues.jsonl", QueueRecord)
    return replace(
        statistics.peer_figures(scenario, job.seed, elapsed_s, outcome.received_bytes),
        stalled_s=stalls.of_queues(sampled, job.shift_s + elapsed_s) if sampled else None,
    )


def _records(path: Path, kind: type[R]) -> Sequence[R]:
    """The records of a file, none where there is no file. FigureError where a line is none."""
    try:
        return Tail(path, kind).read()
    except RecordError as error:
        raise FigureError(str(error)) from error


def outcome_of(run_dir: Path) -> Outcome:
    """What the lab noted of the client's process."""
    return msgspec.json.decode((run_dir / "outcome.json").read_bytes(), type=Outcome)


def write(run_dir: Path) -> RunFigures:
    """Writes `summary.json` and returns the figures; FigureError if there are none."""
    figures = figures_of(run_dir)
    text = msgspec.json.format(msgspec.json.encode(asdict(figures)), indent=2)
    (run_dir / "summary.json").write_bytes(text + b"\n")
    return figures


def _last_words(run_dir: Path) -> str:
    for name in ("client.err", "client.out"):
        lines = (run_dir / name).read_text(errors="replace").strip().splitlines()
        if lines:
            return lines[-1]
    return "it said nothing"
