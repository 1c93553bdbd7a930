"""What a run came to, in Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Callable

from linklab.metrics.metric import Metric, Readings, declared, one
from linklab.runs.run_figures import RunFigures
from linklab.runs.workload_figures import FIGURES

Results = RunFigures | None
"""A finished run's figures; None of one that failed."""


def _figure(value: Callable[[RunFigures], float | None]) -> Callable[[Results], Readings]:
    """One figure of runs that have it."""
    return lambda results: one(None if results is None else value(results))


def _received(results: Results) -> Readings:
    for name, link in (results.links if results else {}).items():
        yield (name,), link.bytes


FAILED = Metric[Results](
    "linklab_run_failed",
    "gauge",
    "Whether the run ended without figures.",
    lambda results: one(float(results is None)),
)

DOWNLOAD = Metric(
    "linklab_run_download_seconds",
    "gauge",
    "Time of the run's download, or upload.",
    _figure(lambda figures: figures.download_s),
)

GOODPUT = Metric(
    "linklab_run_goodput_bytes_per_second",
    "gauge",
    "Payload by the time of the run's download, or upload.",
    _figure(lambda figures: None if figures.goodput_bps is None else figures.goodput_bps / 8),
)

ORACLE = Metric(
    "linklab_run_oracle_seconds",
    "gauge",
    "Least time in which the links could have delivered the payload.",
    _figure(lambda figures: figures.oracle_s),
)

EFFICIENCY = Metric(
    "linklab_run_efficiency_ratio",
    "gauge",
    "Oracle time / time of the download, or upload.",
    _figure(lambda figures: figures.efficiency),
)

LINK_DELTA = Metric(
    "linklab_run_link_delta_seconds",
    "gauge",
    "By how much one link finished after the other.",
    _figure(lambda figures: figures.link_delta_s),
)

STALLED = Metric(
    "linklab_run_stalled_seconds",
    "gauge",
    "How long no link brought anything though bytes were missing.",
    _figure(lambda figures: figures.stalled_s),
)

WASTED = Metric(
    "linklab_run_wasted_bytes",
    "gauge",
    "Bytes that links carried and nobody could use.",
    _figure(lambda figures: figures.wasted_bytes),
)

RECEIVED = Metric(
    "linklab_run_link_received_bytes",
    "gauge",
    "Payload that came over the link.",
    _received,
    ("link",),
)


def _of_workload(unit: str) -> Callable[[Results], Readings]:
    """A workload's own figures of a unit, by their names without it."""

    def read(results: Results) -> Readings:
        for key, value in ((results.workload if results else None) or {}).items():
            if FIGURES[key].unit == unit:
                yield (key.removesuffix("_s"),), value

    return read


WORKLOAD = Metric(
    "linklab_run_workload_seconds",
    "gauge",
    "A time of the run's player, page or other workload.",
    _of_workload("s"),
    ("figure",),
)

WORKLOAD_OCCURRENCES = Metric(
    "linklab_run_workload_occurrences",
    "gauge",
    "What was counted of the run's player or other workload.",
    _of_workload(""),
    ("figure",),
)

METRICS = declared(globals())
