"""What a run's records come to as Prometheus metrics. Pure.

The same for a run that is going on (`linklab live`) and one that is over (`linklab publish`),
so that the same dashboards show both. Every series carries run, scenario, algorithm and seed.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from linklab.core.records import (
    ClientRecord,
    EventRecord,
    LinkRecord,
    MachineRecord,
    QueueRecord,
    Record,
)
from linklab.runs.run_figures import RunFigures

DIRECTIONS = ("down", "up")

LATENESS_WINDOW_S = 5.0
"""The lateness is the worst of so many seconds, or a scrape would see only the last change's."""

REQUEST_SIZES = tuple(float((16 << 10) * 4**n) for n in range(9))
"""Upper bounds of the request sizes' buckets in bytes, 16 KiB to 1 GiB, as in multilink."""

KINDS = (
    "carrier-down", "carrier-up", "outage", "outage-end", "rate", "rate-end", "delay", "delay-end",
    "loss", "loss-end", "fade", "fade-end", "cap", "cap-end", "cross", "cross-end", "handover",
    "associated", "address", "carriers", "rrc", "live",
)  # fmt: skip
"""Kinds of events that every link counts from 0: the step from 0 to 1 is what is annotated."""


@dataclass(frozen=True)
class Family:
    """One metric: its type and what it says."""

    type: str
    help: str


CATALOGUE = {
    "linklab_link_rate_bytes_per_second": Family(
        "gauge", "Rate of a direction of the link as emulated, headers included; 0 in an outage."
    ),
    "linklab_link_delay_seconds": Family("gauge", "One-way delay of the link, queues excluded."),
    "linklab_link_loss_ratio": Family("gauge", "Mean share of downlink packets that are lost."),
    "linklab_link_up": Family("gauge", "Whether the link has a carrier."),
    "linklab_link_carriers": Family("gauge", "Aggregated carriers of an LTE link."),
    "linklab_link_queue_bytes": Family("gauge", "Bytes that wait in a direction of the link."),
    "linklab_link_sent_bytes_total": Family(
        "counter", "Bytes that left a direction's queue, headers included."
    ),
    "linklab_link_dropped_packets_total": Family(
        "counter", "Packets that found a direction's queue full."
    ),
    "linklab_link_lost_packets_total": Family(
        "counter", "Packets of a direction lost on the way, outages included."
    ),
    "linklab_link_handovers_total": Family("counter", "Times that the link left an access point."),
    "linklab_link_outage_seconds_total": Family(
        "counter", "Time in which nothing could pass, noticed by the client or not."
    ),
    "linklab_events_total": Family("counter", "What happened to the links, by kind."),
    "linklab_lateness_seconds": Family(
        "gauge", "By how much the emulator came late at the worst in the last 5 seconds."
    ),
    "linklab_busy_ratio": Family(
        "gauge", "Busy share of the emulator's core in the last second; 0 in virtual time."
    ),
    "linklab_run_info": Family("gauge", "Where the run happens and of what revision."),
    "linklab_run_failed": Family("gauge", "Whether the run ended without figures."),
    "linklab_run_download_seconds": Family("gauge", "Download time of the run."),
    "linklab_run_oracle_seconds": Family(
        "gauge", "Least time in which the links could have delivered the payload."
    ),
    "linklab_run_efficiency_ratio": Family("gauge", "Oracle time / download time."),
    "linklab_run_link_delta_seconds": Family(
        "gauge", "By how much one link finished after the other."
    ),
    "linklab_run_stalled_seconds": Family(
        "gauge", "How long no link brought anything though bytes were missing."
    ),
    "linklab_run_wasted_bytes": Family("gauge", "What all links received in vain."),
    "linklab_run_link_received_bytes": Family("gauge", "Payload that came over the link."),
    "multilink_received_bytes_total": Family(
        "counter", "Bytes of response bodies that the link received."
    ),
    "multilink_wasted_bytes_total": Family("counter", "Received bytes that came to no use."),
    "multilink_request_size_bytes": Family("histogram", "Sizes of range requests."),
    "multilink_requests_in_flight": Family("gauge", "Range requests sent and not ended."),
    "multilink_rtt_seconds": Family(
        "gauge", "Current round trip time of the link, queues included."
    ),
    "multilink_failovers_total": Family("counter", "Times that the link lost its work to others."),
    "multilink_download_progress_ratio": Family("gauge", "Part of the download that has arrived."),
}
"""Every metric, by the name that queries know."""


@dataclass(frozen=True)
class RunLabels:
    """What every series of a run carries."""

    run: str
    scenario: str
    algorithm: str
    seed: str

    def of(self, **more: str) -> dict[str, str]:
        """These labels and more."""
        return {
            "run": self.run, "scenario": self.scenario, "algorithm": self.algorithm,
            "seed": self.seed, **more,
        }  # fmt: skip


@dataclass
class _Link:
    """What is known of one link."""

    state: LinkRecord | None = None
    access_point: str = ""
    outage_s: float = 0.0
    handovers: int = 0
    queues: dict[str, QueueRecord] = field(default_factory=dict)
    requested: Counter[float] = field(default_factory=Counter)
    """Requests by the upper bound of their bucket."""
    requested_bytes: int = 0
    in_flight: int = 0
    sampled_bytes: int = 0
    ended_bytes: int = 0
    wasted_bytes: int = 0
    """Of the received ones."""
    late_bytes: int = 0
    """Of requests that were given up, received by nobody."""
    failovers: int = 0
    rtt_s: float | None = None

    @property
    def out(self) -> bool:
        """Whether nothing can pass to the client."""
        return self.state is not None and self.state.is_out("down")

    @property
    def received_bytes(self) -> int:
        """By the samples, which come during requests, or the ends, which are exact after them."""
        return max(self.sampled_bytes, self.ended_bytes)


class RunMetrics:
    """The metrics of one run, from the records that it has been told so far.

    `links` are the scenario's; their counters stand at 0 before the first record.
    """

    def __init__(self, labels: RunLabels, links: Sequence[str], info: dict[str, str]) -> None:
        self.labels = labels
        self._info = info
        self._links = {name: _Link() for name in links}
        self._events = Counter({(link, kind): 0 for link in links for kind in KINDS})
        self._late: deque[tuple[float, float]] = deque()
        self._now_s = 0.0
        self._size_bytes = 0
        self._resumed_bytes = 0
        self._busy_ratio = 0.0
        self._told_by_client = False
        self._figures: RunFigures | None = None
        self._failed: bool | None = None

    def record(self, t_s: float, record: Record) -> None:
        """Takes in a record of time `t_s`, which is no earlier than the one before."""
        self.advance(t_s)
        match record:
            case LinkRecord():
                self._link_state(t_s, record)
            case QueueRecord():
                self._link(record.link).queues[record.direction] = record
                self._came_late(t_s, record.late_s)
            case EventRecord():
                self._events[record.link, record.kind] += 1
            case ClientRecord():
                self._client(record)
            case MachineRecord():
                self._busy_ratio = record.busy_ratio

    def advance(self, t_s: float) -> None:
        """It is `t_s` seconds after the scenario's beginning now, or later already."""
        passed_s = t_s - self._now_s
        if passed_s <= 0:
            return
        for link in self._links.values():
            if link.out:
                link.outage_s += passed_s
        self._now_s = t_s

    @property
    def now_s(self) -> float:
        """The latest time that it knows of, in seconds since the scenario began."""
        return self._now_s

    def conclude(self, figures: RunFigures | None) -> None:
        """The run is over and came to `figures`, or failed."""
        self._figures, self._failed = figures, figures is None

    def samples(self) -> Iterator[Sample]:
        """All series of a run that is going on, and its figures once there are any."""
        for name, link in self._links.items():
            yield from self._link_samples(name, link)
            if self._told_by_client:
                yield from self._client_samples(name, link)
        for (name, kind), count in self._events.items():
            yield self._sample("linklab_events_total", count, link=name, kind=kind)
        if self._told_by_client:
            yield self._sample("multilink_download_progress_ratio", self._progress)
        yield self._sample("linklab_lateness_seconds", self.lateness_s)
        yield self._sample("linklab_busy_ratio", self._busy_ratio)
        yield self._sample("linklab_run_info", 1, **self._info)
        yield from self.figures()

    def figures(self) -> Iterator[Sample]:
        """What the run came to; nothing while it is going on."""
        if self._failed is None:
            return
        yield self._sample("linklab_run_failed", float(self._failed))
        figures = self._figures
        if figures is None:
            return
        yield self._sample("linklab_run_download_seconds", figures.download_s)
        yield self._sample("linklab_run_oracle_seconds", figures.oracle_s)
        yield self._sample("linklab_run_efficiency_ratio", figures.efficiency)
        if figures.link_delta_s is not None:
            yield self._sample("linklab_run_link_delta_seconds", figures.link_delta_s)
        if figures.stalled_s is not None:
            yield self._sample("linklab_run_stalled_seconds", figures.stalled_s)
        if figures.wasted_bytes is not None:
            yield self._sample("linklab_run_wasted_bytes", figures.wasted_bytes)
        for name, link in figures.links.items():
            yield self._sample("linklab_run_link_received_bytes", link.bytes, link=name)

    def _link(self, name: str) -> _Link:
        return self._links.setdefault(name, _Link())

    def _link_state(self, t_s: float, record: LinkRecord) -> None:
        link = self._link(record.link)
        if link.access_point and record.access_point != link.access_point:
            link.handovers += 1
        link.access_point = record.access_point
        link.state = record
        self._came_late(t_s, record.late_s)

    def _came_late(self, t_s: float, late_s: float) -> None:
        self._late.append((t_s, late_s))
        while self._late[0][0] < t_s - LATENESS_WINDOW_S:
            self._late.popleft()

    @property
    def lateness_s(self) -> float:
        """The worst of the last seconds."""
        recent = self._now_s - LATENESS_WINDOW_S
        return max((late_s for t_s, late_s in self._late if t_s >= recent), default=0.0)

    def _client(self, record: ClientRecord) -> None:
        self._told_by_client = True
        match record.event:
            case "size":
                self._size_bytes = record.bytes
                self._resumed_bytes = record.resumed_bytes
            case "request":
                link = self._link(record.link)
                link.in_flight += 1
                link.requested[
                    next((b for b in REQUEST_SIZES if record.length <= b), math.inf)
                ] += 1
                link.requested_bytes += record.length
            case "end":
                link = self._link(record.link)
                link.in_flight -= 1
                link.ended_bytes += record.bytes + record.wasted_bytes
                link.wasted_bytes += record.wasted_bytes
            case "late":
                self._link(record.link).late_bytes += record.bytes
            case "sample":
                link = self._link(record.link)
                link.sampled_bytes = record.received_bytes
                link.rtt_s = record.rtt_ns / 1e9
            case "failover":
                self._link(record.link).failovers += 1

    @property
    def _progress(self) -> float:
        arrived = self._resumed_bytes + sum(
            link.received_bytes - link.wasted_bytes for link in self._links.values()
        )
        return min(1.0, arrived / self._size_bytes) if self._size_bytes else 0.0

    def _sample(self, name: str, value: float, **labels: str) -> Sample:
        return Sample(name, self.labels.of(**labels), value)

    def _link_samples(self, name: str, link: _Link) -> Iterator[Sample]:
        def one(what: str, value: float, **labels: str) -> Sample:
            return self._sample(f"linklab_link_{what}", value, link=name, **labels)

        state = link.state
        if state is not None:
            for direction in DIRECTIONS:
                rate = state.rate_bps(direction) / 8
                yield one("rate_bytes_per_second", rate, direction=direction)
            yield one("delay_seconds", state.delay_s)
            yield one("loss_ratio", 1.0 if state.blackout else state.loss_ratio)
            yield one("up", float(state.up))
            yield one("carriers", state.carriers)
        for direction in DIRECTIONS:
            queue = link.queues.get(direction)
            counted = (
                (queue.sent_bytes, queue.dropped_packets, queue.lost_packets, queue.queue_bytes)
                if queue
                else (0, 0, 0, 0)
            )
            yield one("sent_bytes_total", counted[0], direction=direction)
            yield one("dropped_packets_total", counted[1], direction=direction)
            yield one("lost_packets_total", counted[2], direction=direction)
            yield one("queue_bytes", counted[3], direction=direction)
        yield one("handovers_total", link.handovers)
        yield one("outage_seconds_total", link.outage_s)

    def _client_samples(self, name: str, link: _Link) -> Iterator[Sample]:
        def one(what: str, value: float, **labels: str) -> Sample:
            return self._sample(f"multilink_{what}", value, link=name, **labels)

        yield one("received_bytes_total", link.received_bytes)
        yield one("wasted_bytes_total", link.wasted_bytes + link.late_bytes)
        yield one("failovers_total", link.failovers)
        yield one("requests_in_flight", link.in_flight)
        if link.rtt_s is not None:
            yield one("rtt_seconds", link.rtt_s)
        below = 0
        for bound in (*REQUEST_SIZES, math.inf):
            below += link.requested[bound]
            yield one("request_size_bytes_bucket", below, le=floatToGoString(bound))  # type: ignore[no-untyped-call]
        yield one("request_size_bytes_count", below)
        yield one("request_size_bytes_sum", link.requested_bytes)


def families(samples: Iterable[Sample]) -> list[Metric]:
    """The samples under their metrics, in the catalogue's order, series by series."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        grouped.setdefault(_family_of(sample.name), []).append(sample)
    metrics = []
    for name, family in CATALOGUE.items():
        if name in grouped:
            metric = Metric(name.removesuffix("_total"), family.help, family.type)
            metric.samples = sorted(grouped[name], key=_series)
            metrics.append(metric)
    return metrics


def _family_of(sample: str) -> str:
    if sample in CATALOGUE:
        return sample
    return sample.rpartition("_")[0]  # A histogram's _bucket, _count, _sum.


def _series(sample: Sample) -> tuple[object, ...]:
    labels = {**sample.labels, "le": ""}
    bound = float(sample.labels.get("le", "inf"))
    return (sorted(labels.items()), sample.name, bound, sample.timestamp or 0.0)
