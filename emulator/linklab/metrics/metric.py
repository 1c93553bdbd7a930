"""Defines what a metric is and where its values come from. Pure.

A metric is one entry in the file of its subject (`links`, `lab`, `results`, `client`). Live runs,
published runs, dashboards and tests all use these entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

RUN_LABELS = ("run", "scenario", "size", "algorithm", "seed", "clock")
"""The labels of every series of a run."""

S = TypeVar("S")


@dataclass(frozen=True)
class Distribution:
    """Holds a histogram: the number of values by the upper bound of their bucket (infinite above
    all bounds), and their sum."""

    counts: Mapping[float, int]
    total: float


Readings = Iterable[tuple[tuple[str, ...], float | Distribution]]
"""The series of a metric: its label values, in the order of its labels, and its value."""


@dataclass(frozen=True)
class Metric(Generic[S]):
    """Defines one metric.

    `name` ends in the unit, by Prometheus' conventions. Of a counter, and of no other metric, it
    ends in `_total`. `labels` are those besides `RUN_LABELS`. `buckets` are the upper bounds of a histogram. `read`
    yields the series from what is known of a run.
    """

    name: str
    help: str
    read: Callable[[S], Readings]
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def type(self) -> Literal["gauge", "counter", "histogram"]:
        """The type in Prometheus' terms."""
        if self.buckets:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"

    @property
    def series(self) -> tuple[str, ...]:
        """The names that queries use."""
        suffixes = ("_bucket", "_sum", "_count") if self.type == "histogram" else ("",)
        return tuple(self.name + suffix for suffix in suffixes)

    def samples(self, source: S, run: Mapping[str, str]) -> Iterator[Sample]:
        """Yields the metric's current samples. `run` has the run's own labels."""
        for values, value in self.read(source):
            labels = {**run, **dict(zip(self.labels, values, strict=True))}
            if isinstance(value, Distribution):
                yield from self._distributed(value, labels)
            else:
                yield Sample(self.name, labels, value)

    def bucket_of(self, value: float) -> float:
        """Returns the upper bound of the bucket that counts a value."""
        return next((bound for bound in self.buckets if value <= bound), math.inf)

    def _distributed(self, value: Distribution, labels: dict[str, str]) -> Iterator[Sample]:
        below = 0
        for bound in (*self.buckets, math.inf):
            below += value.counts.get(bound, 0)
            shown = floatToGoString(bound)  # type: ignore[no-untyped-call]
            yield Sample(f"{self.name}_bucket", {**labels, "le": shown}, below)
        yield Sample(f"{self.name}_count", labels, below)
        yield Sample(f"{self.name}_sum", labels, value.total)


def single(value: float | None) -> Readings:
    """Yields the only series of a metric without labels, none if `value` is None."""
    if value is not None:
        yield (), value


def declared(module: Mapping[str, Any]) -> tuple[Metric[Any], ...]:
    """Returns the metrics that a module (its `globals()`) declares, in its order."""
    return tuple(entry for entry in module.values() if isinstance(entry, Metric))
