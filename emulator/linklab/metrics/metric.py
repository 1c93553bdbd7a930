"""What a metric is, and where its values come from. Pure.

A metric is one entry in the file of what it is about (`links`, `lab`, `results`, `client`). Runs
that go on, published runs, dashboards and tests all take it from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

RUN_LABELS = ("run", "scenario", "size", "algorithm", "seed", "clock")
"""What every series of a run carries: which one it is, and what its figures hang on."""

S = TypeVar("S")


@dataclass(frozen=True)
class Distribution:
    """What a histogram holds: how many values by the upper bound of their bucket (infinite for
    those above all bounds), and their sum."""

    counts: Mapping[float, int]
    total: float


Readings = Iterable[tuple[tuple[str, ...], float | Distribution]]
"""The series of a metric: values of its labels, in its labels' order, and the value."""


@dataclass(frozen=True)
class Metric(Generic[S]):
    """One metric.

    `name` ends in its unit, as Prometheus' conventions have it (`_total` follows that of a
    counter). `labels` are those besides `RUN_LABELS`. `buckets` are the upper bounds of a
    histogram. `read` finds the series in what is known of a run.
    """

    name: str
    type: Literal["gauge", "counter", "histogram"]
    help: str
    read: Callable[[S], Readings]
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names that queries know."""
        suffixes = ("_bucket", "_sum", "_count") if self.type == "histogram" else ("",)
        return tuple(self.name + suffix for suffix in suffixes)

    def samples(self, source: S, run: Mapping[str, str]) -> Iterator[Sample]:
        """Its series of a run as they are now; `run` has the run's own labels."""
        for values, value in self.read(source):
            labels = {**run, **dict(zip(self.labels, values, strict=True))}
            if isinstance(value, Distribution):
                yield from self._distributed(value, labels)
            else:
                yield Sample(self.name, labels, value)

    def bucket_of(self, value: float) -> float:
        """The upper bound of the bucket that a value is counted in."""
        return next((bound for bound in self.buckets if value <= bound), math.inf)

    def _distributed(self, value: Distribution, labels: dict[str, str]) -> Iterator[Sample]:
        below = 0
        for bound in (*self.buckets, math.inf):
            below += value.counts.get(bound, 0)
            shown = floatToGoString(bound)  # type: ignore[no-untyped-call]
            yield Sample(f"{self.name}_bucket", {**labels, "le": shown}, below)
        yield Sample(f"{self.name}_count", labels, below)
        yield Sample(f"{self.name}_sum", labels, value.total)


def one(value: float | None) -> Readings:
    """The only series of a metric without labels; none where there is no value."""
    if value is not None:
        yield (), value


def declared(module: Mapping[str, Any]) -> tuple[Metric[Any], ...]:
    """The metrics that a module (its `globals()`) declares, in its order."""
    return tuple(entry for entry in module.values() if isinstance(entry, Metric))
