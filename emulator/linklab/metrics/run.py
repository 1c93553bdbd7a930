"""Computes a run's metrics from its records, both while it goes on and afterwards. Pure.

`linklab live` and `linklab publish` both use this module, so that the same dashboards show both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from linklab.core.records import ClientRecord, EventRecord, Record
from linklab.metrics import about, client, download, lab, links, marks, regression, results
from linklab.metrics.about import About, Setting
from linklab.metrics.metric import Metric
from linklab.runs.run_figures import RunFigures

CATALOGUE = (
    *links.METRICS,
    *marks.METRICS,
    *lab.METRICS,
    *download.METRICS,
    *client.METRICS,
    *about.METRICS,
    *results.METRICS,
    *regression.METRICS,
)
"""All metrics."""

_BY_SERIES = {name: metric.name for metric in CATALOGUE for name in metric.series}

S = TypeVar("S")


@dataclass(frozen=True)
class RunLabels:
    """Holds the labels of every series of a run."""

    run: str
    scenario: str
    size: str
    algorithm: str
    seed: str
    clock: str


class RunMetrics:
    """Computes the metrics of one run from its records so far.

    `link_names` are the scenario's links. Their counters are 0 before the first record.
    `size_bytes` is the file's size, None if nothing is transferred.
    """

    def __init__(
        self, labels: RunLabels, link_names: Sequence[str], size_bytes: int | None, setting: Setting
    ) -> None:
        self.labels = labels
        self._links = links.AllLinkMetrics(link_names)
        self._marks = marks.Marks(self._links)
        self._lab = lab.LabMetrics(link_names)
        self._client = client.Client(link_names, size_bytes or 0)
        self._download = download.Download(
            link_names, self._client, size_bytes, setting.direction, setting.goodput_ratios
        )
        self._about = About(setting, self._lab)
        self._results: results.Results = None
        self._verdict: regression.Verdict = None
        self._now_s = 0.0

    def record(self, t_s: float, record: Record) -> None:
        """Counts a record of time `t_s`. Times must not decrease."""
        self.advance(t_s)
        self._links.record(record)
        self._lab.record(t_s, record)
        if isinstance(record, ClientRecord):
            self._client.record(record)
        if isinstance(record, EventRecord):
            self._marks.event(t_s, record)
        self._download.record(record)
        self._marks.pass_time(self._now_s)

    def advance(self, t_s: float) -> None:
        """Moves to `t_s` seconds since the scenario's start, unless that time is past."""
        passed_s = t_s - self._now_s
        if passed_s > 0:
            self._links.pass_time(passed_s)
            self._lab.pass_time(t_s)
            self._now_s = t_s
            self._marks.pass_time(t_s)

    @property
    def now_s(self) -> float:
        """The latest known time, in seconds since the scenario's start."""
        return self._now_s

    @property
    def links(self) -> dict[str, links.LinkMetrics]:
        """What is known of each link."""
        return self._links.links

    @property
    def progress_ratio(self) -> float | None:
        """Part of the file that is there; None of no file."""
        return self._download.progress_ratio

    def by_hand(self, link: str) -> list[str]:
        """Returns the values of a link that a user has set, in words, such as "rate 10 Mbit/s"."""
        return self._marks.in_force(link)

    @property
    def lateness_s(self) -> float:
        """The emulator's worst lateness in the last seconds."""
        return self._lab.lateness_s

    @property
    def keeps_up(self) -> bool:
        """Whether the emulator is punctual enough that no result changes."""
        return not (self._lab.is_late or self._lab.is_busy)

    def conclude(
        self, figures: RunFigures | None, ended_s: float, verdict: regression.Verdict = None
    ) -> None:
        """Ends the run at `ended_s` (Unix seconds) with `figures`, None if it failed, and its
        suite's verdict, if it belongs to a suite."""
        self._about.ended_s, self._results, self._verdict = ended_s, figures, verdict

    def samples(self) -> Iterator[Sample]:
        """Yields all samples of a run while it goes on, and its figures if there are any."""
        yield from self._of(links.METRICS, self._links)
        yield from self._of(marks.METRICS, self._marks)
        yield from self._of(lab.METRICS, self._lab)
        yield from self._of(download.METRICS, self._download)
        yield from self._of(client.METRICS, self._client)
        yield from self.figures()

    def figures(self) -> Iterator[Sample]:
        """Yields the samples of the run as a whole, and its figures once it has ended."""
        yield from self._of(about.METRICS, self._about)
        if self._about.ended_s is not None:
            yield from self._of(results.METRICS, self._results)
            yield from self._of(regression.METRICS, self._verdict)

    def _of(self, metrics: Iterable[Metric[S]], source: S) -> Iterator[Sample]:
        labels = asdict(self.labels)
        for metric in metrics:
            yield from metric.samples(source, labels)


def families(samples: Iterable[Sample]) -> list[Family]:
    """Groups samples by metric, in the order of METRICS, and sorts each metric's series."""
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
