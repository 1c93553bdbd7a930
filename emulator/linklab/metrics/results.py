"""Defines the metrics of a finished run's figures. Pure."""

from __future__ import annotations

from collections.abc import Callable

from linklab.metrics.metric import Metric, Readings, single
from linklab.runs import figures
from linklab.runs.figures import Gauge, RunFigure
from linklab.runs.run_figures import RunFigures
from linklab.runs.workload_figures import FIGURES

Results = RunFigures | None
"""A finished run's figures, None if it failed."""


def _of_run(figure: RunFigure, gauge: Gauge) -> Metric[Results]:
    """Returns the metric of one figure, in Prometheus' unit. Runs without the figure have no
    series."""

    def read(results: Results) -> Readings:
        value = None if results is None else figure.of(results)
        return single(None if value is None else value / gauge.base)

    return Metric(gauge.name, gauge.help, read)


def _received(results: Results) -> Readings:
    for name, link in (results.links if results else {}).items():
        yield (name,), link.bytes


FAILED = Metric[Results](
    "linklab_run_failed",
    "Whether the run ended without figures.",
    lambda results: single(float(results is None)),
)

OF_RUNS = {
    figure.key: _of_run(figure, gauge)
    for figure, gauge in figures.figures_in(lambda one: one.gauge)
}
"""The metrics of a run's figures, by the figures' keys."""

GOODPUT = OF_RUNS[figures.GOODPUT.key]


def _sojourns(results: Results) -> Readings:
    for name, queues in ((results and results.queues) or {}).items():
        for direction, queue in queues.items():
            if queue.sojourn is not None:
                for key, share in (("p50_s", "0.5"), ("p95_s", "0.95"), ("p99_s", "0.99")):
                    yield (name, direction, share), getattr(queue.sojourn, key)


SOJOURN = Metric(
    "linklab_run_link_sojourn_seconds",
    "Time that this share of the packets waited at most in a direction's queue.",
    _sojourns,
    ("link", "direction", "quantile"),
)

RECEIVED = Metric(
    "linklab_run_link_received_bytes",
    "Payload that came over the link.",
    _received,
    ("link",),
)


def _of_workload(unit: str) -> Callable[[Results], Readings]:
    """Yields a workload's own figures of a unit, by their names without the unit."""

    def read(results: Results) -> Readings:
        for key, value in ((results.workload if results else None) or {}).items():
            if FIGURES[key].unit == unit:
                yield (key.removesuffix("_s"),), value

    return read


WORKLOAD = Metric(
    "linklab_run_workload_seconds",
    "A time of the run's player, page or other workload.",
    _of_workload("s"),
    ("figure",),
)

WORKLOAD_OCCURRENCES = Metric(
    "linklab_run_workload_occurrences",
    "What was counted of the run's player or other workload.",
    _of_workload(""),
    ("figure",),
)

METRICS = (FAILED, *OF_RUNS.values(), RECEIVED, WORKLOAD, WORKLOAD_OCCURRENCES)
