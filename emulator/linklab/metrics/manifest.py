"""What a run's manifest says in Prometheus: its label and the labels of its series."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from linklab.metrics.lab import Place
from linklab.metrics.run import RunLabels, RunMetrics
from linklab.runs.job import Job


def run_label(made: Job, run_dir: Path) -> str:
    """What a run is called in Prometheus: when it was started, and its directory."""
    return f"{re.sub('[^0-9T]', '', made.started_at[:19])}-{run_dir.resolve().name}"


def new_metrics(label: str, made: Job, links: Sequence[str]) -> RunMetrics:
    """The metrics of a run that nothing is known of but its manifest."""
    algorithm = made.title
    place = Place(made.place, made.clock, made.versions.get("revision", "unknown"))
    labels = RunLabels(label, made.scenario, algorithm, str(made.seed))
    return RunMetrics(labels, links, place)
