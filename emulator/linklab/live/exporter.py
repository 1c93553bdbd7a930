"""The metrics of a live lab's runs for Prometheus, from the files that they are writing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from linklab.core.records import Follower
from linklab.metrics.manifest import new_metrics, run_label
from linklab.metrics.run import RunMetrics, families
from linklab.runs.job import Job
from linklab.runs.run_figures import RunFigures
from linklab.scenario import Scenario


class Exporter(Collector):
    """Everything of the run that is going on, and what each algorithm's last run came to.

    Asked by several threads; the files are read when somebody asks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[RunMetrics, Follower] | None = None
        self._ended: dict[str, RunMetrics] = {}

    def begin(self, run_dir: Path, job: Job, scenario: Scenario) -> str:
        """A run begins in `run_dir`; returns what it is called from now on."""
        label = run_label(job, run_dir)
        metrics = new_metrics(label, job, scenario, time.time())
        with self._lock:
            self._running = (metrics, Follower(run_dir, job.shift_s))
        return label

    def end(self, figures: RunFigures | None) -> None:
        """The run is over and came to `figures`, or failed."""
        with self._lock:
            if self._running is not None:
                metrics, _ = self._running
                metrics.conclude(figures, time.time())
                self._ended[metrics.labels.algorithm] = metrics
            self._running = None

    def forget(self) -> None:
        """The run was broken off: it neither came to figures nor failed."""
        with self._lock:
            self._running = None

    @property
    def lateness_s(self) -> float:
        """By how much the emulator came late at the worst in the last seconds."""
        with self._lock:
            running = self._read()
            return running.lateness_s if running else 0.0

    @property
    def keeps_up(self) -> bool:
        """Whether the emulator is in time, as far as a figure would notice."""
        with self._lock:
            running = self._read()
            return running is None or running.keeps_up

    @property
    def now_s(self) -> float:
        """The newest time that the run has written down, in seconds since its scenario began."""
        with self._lock:
            running = self._read()
            return running.now_s if running else 0.0

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now. Raises RecordError where a file holds something else."""
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
        return metrics
