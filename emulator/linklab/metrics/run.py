"""A run's metrics, from its records: the same while it goes on and once it is over. Pure.

`linklab live` and `linklab publish` both take them from here, so that the same dashboards show
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from linklab.core.records import ClientRecord, Record
from linklab.metrics import client, lab, links, results
from linklab.metrics.lab import Place
from linklab.runs.run_figures import RunFigures

CATALOGUE = (*links.METRICS, *lab.METRICS, *results.METRICS, *client.METRICS)
"""Every metric."""

_BY_SERIES = {name: metric.name for metric in CATALOGUE for name in metric.series}


@dataclass(frozen=True)
class RunLabels:
    """What every series of a run carries."""

    run: str
    scenario: str
    algorithm: str
    seed: str


class RunMetrics:
    """The metrics of one run, from the records that it has been told so far.

    `links` are the scenario's; their counters stand at 0 before the first record.
    """

    def __init__(self, labels: RunLabels, link_names: Sequence[str], place: Place) -> None:
        self.labels = labels
        self._links = links.Links(link_names)
        self._lab = lab.Lab(link_names, place)
        self._client = client.Client(link_names)
        self._is_over = False
        self._results: results.Results = None
        self._now_s = 0.0

    def record(self, t_s: float, record: Record) -> None:
        """Takes in a record of time `t_s`, which is no earlier than the one before."""
        self.advance(t_s)
        self._links.record(record)
        self._lab.record(t_s, record)
        if isinstance(record, ClientRecord):
            self._client.record(record)

    def advance(self, t_s: float) -> None:
        """It is `t_s` seconds after the scenario's beginning now, or later already."""
        passed_s = t_s - self._now_s
        if passed_s > 0:
            self._links.pass_time(passed_s)
            self._lab.pass_time(t_s)
            self._now_s = t_s

    @property
    def now_s(self) -> float:
        """The latest time that it knows of, in seconds since the scenario began."""
        return self._now_s

    @property
    def lateness_s(self) -> float:
        """By how much the emulator came late at the worst in the last seconds."""
        return self._lab.lateness_s

    def conclude(self, figures: RunFigures | None) -> None:
        """The run is over and came to `figures`, or failed."""
        self._is_over, self._results = True, figures

    def samples(self) -> Iterator[Sample]:
        """All series of a run that is going on, and its figures once there are any."""
        labels = asdict(self.labels)
        for metric in links.METRICS:
            yield from metric.samples(self._links, labels)
        for metric in lab.METRICS:
            yield from metric.samples(self._lab, labels)
        for metric in client.METRICS:
            yield from metric.samples(self._client, labels)
        yield from self.figures()

    def figures(self) -> Iterator[Sample]:
        """What the run came to; nothing while it is going on."""
        for metric in results.METRICS if self._is_over else ():
            yield from metric.samples(self._results, asdict(self.labels))


def families(samples: Iterable[Sample]) -> list[Family]:
    """The samples under their metrics, in the catalogue's order, series by series."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        grouped.setdefault(_BY_SERIES[sample.name], []).append(sample)
    found = []
    for metric in CATALOGUE:
        if metric.name in grouped:
            family = Family(metric.name.removesuffix("_total"), metric.help, metric.type)
            family.samples = sorted(grouped[metric.name], key=_series)
            found.append(family)
    return found


def _series(sample: Sample) -> tuple[object, ...]:
    labels = {**sample.labels, "le": ""}
    bound = float(sample.labels.get("le", "inf"))
    return (sorted(labels.items()), sample.name, bound, sample.timestamp or 0.0)
