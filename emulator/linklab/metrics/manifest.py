"""Derives a run's Prometheus labels from its manifest."""

from __future__ import annotations

import re
from pathlib import Path

from linklab.core import units
from linklab.core.frames import goodput_ratio
from linklab.core.printable import as_utf8
from linklab.metrics.about import Setting
from linklab.metrics.run import RunLabels, RunMetrics
from linklab.runs import clients
from linklab.runs.job import NOBODY, Job
from linklab.scenario import Scenario


def run_label(manifest: Job, run_dir: Path) -> str:
    """Returns the run's label: its start time and its directory's name. Labels sort by start."""
    return f"{re.sub('[^0-9T]', '', manifest.started_at[:19])}-{as_utf8(run_dir.resolve().name)}"


def new_metrics(label: str, manifest: Job, scenario: Scenario, began_s: float) -> RunMetrics:
    """Returns the metrics of a run before its first record. `began_s` is the scenario's start on
    Prometheus' clock, in Unix seconds."""
    lists = clients.names(scenario.links)
    size_bytes = scenario.payload.size_bytes
    labels = RunLabels(
        run=label,
        scenario=manifest.scenario,
        size=units.format_size(size_bytes),
        algorithm=manifest.title,
        seed=str(manifest.seed),
        clock=manifest.clock,
    )
    setting = Setting(
        place=manifest.place,
        revision=manifest.versions.get("revision", "unknown"),
        order=lists.index(manifest.title) if manifest.title in lists else len(lists),
        began_s=began_s,
        direction=scenario.workload.direction,
        goodput_ratios={
            name: goodput_ratio(link.families) for name, link in scenario.links.items()
        },
    )
    is_for_others = manifest.title == NOBODY or manifest.terminal is not None
    moved_bytes = None if is_for_others else size_bytes
    return RunMetrics(labels, tuple(scenario.links), moved_bytes, setting)
