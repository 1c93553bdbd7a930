"""Exports the metrics of a live lab's runs to Prometheus, from the runs' growing files."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from linklab.core.records import Follower
from linklab.metrics.manifest import new_metrics, run_label
from linklab.metrics.run import RunMetrics, families
from linklab.realtime.view import Cursor, PageView
from linklab.runs.job import Job
from linklab.runs.run_figures import RunFigures
from linklab.scenario import Scenario


class Exporter(Collector):
    """Collects the metrics of the current run, and the figures of each algorithm's last run.

    Several threads may call it. It reads the files on each call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[RunMetrics, Follower] | None = None
        self._ended: dict[str, RunMetrics] = {}
        self._view: PageView | None = None
        self._begun = 0

    def begin(self, run_dir: Path, job: Job, scenario: Scenario) -> str:
        """Begins a run in `run_dir`, and returns its label."""
        label = run_label(job, run_dir)
        metrics = new_metrics(label, job, scenario, time.time())
        with self._lock:
            self._running = (metrics, Follower(run_dir, job.shift_s))
            self._begun += 1
            self._view = PageView(self._begun, label, job.title, job.seed, scenario, metrics)
        return label

    def news(self, cursor: Cursor) -> tuple[Cursor, dict[str, Any]]:
        """Returns what a reader of the page does not have yet, and its new cursor.

        After a run's end the page shows it until the next one begins. Raises RecordError.
        """
        with self._lock:
            self._read()
            return (cursor, {}) if self._view is None else self._view.since(cursor)

    def now(self) -> dict[str, Any] | None:
        """Returns what the last run and its links are now, None before the first run. Raises
        RecordError."""
        with self._lock:
            self._read()
            return None if self._view is None else self._view.now()

    def end(self, figures: RunFigures | None) -> None:
        """Ends the run with its figures; None if it failed."""
        with self._lock:
            if self._running is not None:
                metrics, _ = self._running
                metrics.conclude(figures, time.time())
                self._ended[metrics.labels.algorithm] = metrics
            self._running = None

    def forget(self) -> None:
        """Drops the run because it was stopped: it has no figures, and has not failed."""
        with self._lock:
            self._running = None

    @property
    def lateness_s(self) -> float:
        """The emulator's largest delay in the last seconds."""
        with self._lock:
            running = self._read()
            return running.lateness_s if running else 0.0

    @property
    def keeps_up(self) -> bool:
        """Tells whether the emulator's delay is too small to change a figure."""
        with self._lock:
            running = self._read()
            return running is None or running.keeps_up

    @property
    def now_s(self) -> float:
        """The newest recorded time of the run, in seconds since its scenario's start."""
        with self._lock:
            running = self._read()
            return running.now_s if running else 0.0

    def collect(self) -> Iterator[Metric]:
        """Yields the current metrics. Raises RecordError if a file has other content."""
        with self._lock:
            running = self._read()
            found = list(running.samples()) if running else []
            for metrics in self._ended.values():
                found += metrics.figures()
        yield from families(found)

    def _read(self) -> RunMetrics | None:
        if self._running is None:
            return None
        metrics, follower = self._running
        for t_s, record in follower.read():
            metrics.record(t_s, record)
            if self._view is not None:
                self._view.take(record)
        return metrics
