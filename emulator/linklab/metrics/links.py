"""Defines the metrics of the emulated links: their states as applied, and their queues' counters.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from linklab.core.link_state import DIRECTIONS
from linklab.core.records import LinkRecord, QueueRecord, Record
from linklab.metrics.last_second import LastSecond
from linklab.metrics.metric import Metric, Readings, declared
from linklab.queues import discipline


@dataclass
class Direction:
    """Holds the counters of one direction of a link."""

    capacity_bytes: float = 0.0
    """The bytes that the link could have carried so far."""
    queue: QueueRecord | None = None
    """The newest sample."""
    last_second: LastSecond = field(default_factory=lambda: LastSecond(3))
    """Capacity and carried bytes, and seconds of outage, at the samples' times."""


@dataclass
class LinkMetrics:
    """Holds the state and the counters of one link."""

    state: LinkRecord | None = None
    access_point: str = ""
    outage_s: float = 0.0
    handovers: int = 0
    directions: dict[str, Direction] = field(
        default_factory=lambda: {name: Direction() for name in DIRECTIONS}
    )

    @property
    def is_out(self) -> bool:
        """Whether nothing can reach the client."""
        return self.state is not None and self.state.is_out("down")


class AllLinkMetrics:
    """Counts the records of all links of a run."""

    def __init__(self, names: Sequence[str]) -> None:
        self.links = {name: LinkMetrics() for name in names}

    def record(self, record: Record) -> None:
        """Counts a record."""
        match record:
            case LinkRecord():
                link = self._link(record.link)
                if link.access_point and record.access_point != link.access_point:
                    link.handovers += 1
                link.access_point = record.access_point
                link.state = record
            case QueueRecord():
                link = self._link(record.link)
                found = link.directions[record.direction]
                found.queue = record
                found.last_second.read(
                    record.t_s, found.capacity_bytes, record.sent_bytes, link.outage_s
                )

    def pass_time(self, seconds: float) -> None:
        """Advances the time by `seconds` in which no state changed."""
        for link in self.links.values():
            if link.is_out:
                link.outage_s += seconds
            for name, direction in link.directions.items():
                direction.capacity_bytes += seconds * (_rate_bytes_per_s(link, name) or 0.0)

    def _link(self, name: str) -> LinkMetrics:
        return self.links.setdefault(name, LinkMetrics())


def _per_link(value: Callable[[LinkMetrics], float | None]) -> Callable[[AllLinkMetrics], Readings]:
    def read(known: AllLinkMetrics) -> Readings:
        for name, link in known.links.items():
            found = value(link)
            if found is not None:
                yield (name,), found

    return read


def _per_direction(
    value: Callable[[LinkMetrics, str], float | None],
) -> Callable[[AllLinkMetrics], Readings]:
    def read(known: AllLinkMetrics) -> Readings:
        for name, link in known.links.items():
            for direction in DIRECTIONS:
                found = value(link, direction)
                if found is not None:
                    yield (name, direction), found

    return read


def _applied(value: Callable[[LinkRecord], float]) -> Callable[[AllLinkMetrics], Readings]:
    """Returns the series of links whose state is known."""
    return _per_link(lambda link: None if link.state is None else value(link.state))


def _counted(value: Callable[[QueueRecord], int]) -> Callable[[AllLinkMetrics], Readings]:
    """Returns the series of a queue's counter, 0 before its first sample."""

    def of(link: LinkMetrics, direction: str) -> float:
        queue = link.directions[direction].queue
        return 0 if queue is None else value(queue)

    return _per_direction(of)


def _rate_bytes_per_s(link: LinkMetrics, direction: str) -> float | None:
    return None if link.state is None else link.state.rate_bps(direction) / 8


_LINK = ("link",)
_DIRECTION = ("link", "direction")

RATE = Metric(
    "linklab_link_rate_bytes_per_second",
    "gauge",
    "Rate of a direction of the link as emulated, headers included; 0 in an outage.",
    _per_direction(_rate_bytes_per_s),
    _DIRECTION,
)

CAPACITY = Metric(
    "linklab_link_capacity_bytes_per_second",
    "gauge",
    "What a direction of the link could carry in the last second, headers included.",
    _per_direction(lambda link, name: link.directions[name].last_second.per_second()[0]),
    _DIRECTION,
)

USE = Metric(
    "linklab_link_use_bytes_per_second",
    "gauge",
    "What left a direction's queue in the same second, headers included.",
    _per_direction(lambda link, name: link.directions[name].last_second.per_second()[1]),
    _DIRECTION,
)

DELAY = Metric(
    "linklab_link_delay_seconds",
    "gauge",
    "One-way delay of the link, queues excluded.",
    _applied(lambda state: state.delay_s),
    _LINK,
)

LOSS = Metric(
    "linklab_link_loss_ratio",
    "gauge",
    "Mean share of downlink packets that are lost.",
    _applied(lambda state: state.lost_ratio("down")),
    _LINK,
)

UP = Metric(
    "linklab_link_up",
    "gauge",
    "Whether the link has a carrier.",
    _applied(lambda state: float(state.up)),
    _LINK,
)

CARRIERS = Metric(
    "linklab_link_carriers",
    "gauge",
    "Aggregated carriers of an LTE link.",
    _applied(lambda state: state.carriers),
    _LINK,
)

QUEUE = Metric(
    "linklab_link_queue_bytes",
    "gauge",
    "Bytes that wait in a direction of the link.",
    _counted(lambda queue: queue.queue_bytes),
    _DIRECTION,
)

SENT = Metric(
    "linklab_link_sent_bytes_total",
    "counter",
    "Bytes that left a direction's queue, headers included.",
    _counted(lambda queue: queue.sent_bytes),
    _DIRECTION,
)

DROPPED = Metric(
    "linklab_link_dropped_packets_total",
    "counter",
    "Packets that a direction's queue dropped.",
    _counted(lambda queue: queue.dropped_packets),
    _DIRECTION,
)

MARKED = Metric(
    "linklab_link_marked_packets_total",
    "counter",
    "Packets that a direction's queue discipline marked as congested (ECN CE).",
    _counted(lambda queue: (queue.discipline or {}).get(discipline.MARKED, 0)),
    _DIRECTION,
)

DROPPED_EARLY = Metric(
    "linklab_link_early_dropped_packets_total",
    "counter",
    "Packets that a direction's queue discipline dropped before its queue was full.",
    _counted(lambda queue: (queue.discipline or {}).get(discipline.DROPPED_EARLY, 0)),
    _DIRECTION,
)

LOST = Metric(
    "linklab_link_lost_packets_total",
    "counter",
    "Packets of a direction lost on the way, outages included.",
    _counted(lambda queue: queue.lost_packets),
    _DIRECTION,
)

HANDOVERS = Metric(
    "linklab_link_handovers_total",
    "counter",
    "Times that the link left an access point.",
    _per_link(lambda link: link.handovers),
    _LINK,
)

OUTAGE = Metric(
    "linklab_link_outage_seconds_total",
    "counter",
    "Time in which nothing could pass, noticed by the client or not.",
    _per_link(lambda link: link.outage_s),
    _LINK,
)

OUT = Metric(
    "linklab_link_outage_ratio",
    "gauge",
    "Share of the last second in which nothing could pass, noticed by the client or not.",
    _per_link(lambda link: link.directions["down"].last_second.per_second()[2]),
    _LINK,
)

METRICS = declared(globals())
