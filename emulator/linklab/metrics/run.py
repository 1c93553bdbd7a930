"""A run's metrics, from its records: the same while it goes on and once it is over. Pure.

`linklab live` and `linklab publish` both take them from here, so that the same dashboards show
both.
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
"""Every metric."""

_BY_SERIES = {name: metric.name for metric in CATALOGUE for name in metric.series}

S = TypeVar("S")


@dataclass(frozen=True)
class RunLabels:
    """What every series of a run carries."""

    run: str
    scenario: str
    size: str
    algorithm: str
    seed: str
    clock: str


class RunMetrics:
    """The metrics of one run, from the records that it has been told so far.

    `link_names` are the scenario's links; their counters stand at 0 before the first record.
    `size_bytes` is the file's, None where nobody downloads or uploads one.
    """

    def __init__(
        self, labels: RunLabels, link_names: Sequence[str], size_bytes: int | None, setting: Setting
    ) -> None:
        self.labels = labels
        self._links = links.AllLinkMetrics(link_names)
        self._marks = marks.Marks(self._links)
        self._lab = lab.LabMetrics(link_names)
        self._client = client.Client(link_names, size_bytes or 0)
        self._download = download.Download(link_names, self._client, size_bytes, setting.direction)
        self._about = About(setting, self._lab)
        self._results: results.Results = None
        self._verdict: regression.Verdict = None
        self._now_s = 0.0

    def record(self, t_s: float, record: Record) -> None:
        """Takes in a record of time `t_s`, which is no earlier than the one before."""
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
        """It is `t_s` seconds after the scenario's beginning now, or later already."""
        passed_s = t_s - self._now_s
        if passed_s > 0:
            self._links.pass_time(passed_s)
            self._lab.pass_time(t_s)
            self._now_s = t_s
            self._marks.pass_time(t_s)

    @property
    def now_s(self) -> float:
        """The latest time that it knows of, in seconds since the scenario began."""
        return self._now_s

    @property
    def lateness_s(self) -> float:
        """By how much the emulator came late at the worst in the last seconds."""
        return self._lab.lateness_s

    @property
    def keeps_up(self) -> bool:
        """Whether the emulator is in time, as far as a figure would notice."""
        return not (self._lab.is_late or self._lab.is_busy)

    def conclude(
        self, figures: RunFigures | None, ended_s: float, verdict: regression.Verdict = None
    ) -> None:
        """The run is over since `ended_s` (Unix seconds) and came to `figures`, or failed; and what
        its suite says of that, if it is in one."""
        self._about.ended_s, self._results, self._verdict = ended_s, figures, verdict

    def samples(self) -> Iterator[Sample]:
        """All series of a run that is going on, and its figures once there are any."""
        yield from self._of(links.METRICS, self._links)
        yield from self._of(marks.METRICS, self._marks)
        yield from self._of(lab.METRICS, self._lab)
        yield from self._of(download.METRICS, self._download)
        yield from self._of(client.METRICS, self._client)
        yield from self.figures()

    def figures(self) -> Iterator[Sample]:
        """What is to be said of the run as a whole, and what it came to once it is over."""
        yield from self._of(about.METRICS, self._about)
        if self._about.ended_s is not None:
            yield from self._of(results.METRICS, self._results)
            yield from self._of(regression.METRICS, self._verdict)

    def _of(self, metrics: Iterable[Metric[S]], source: S) -> Iterator[Sample]:
        labels = asdict(self.labels)
        for metric in metrics:
            yield from metric.samples(source, labels)


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
