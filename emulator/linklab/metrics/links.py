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


def _of_links(
    name: str, about: str, value: Callable[[LinkMetrics], float | None]
) -> Metric[AllLinkMetrics]:
    """Defines a metric of each link. Links without a value have no series."""

    def read(known: AllLinkMetrics) -> Readings:
        for link_name, link in known.links.items():
            found = value(link)
            if found is not None:
                yield (link_name,), found

    return Metric(name, about, read, ("link",))


def _of_directions(
    name: str, about: str, value: Callable[[LinkMetrics, str], float | None]
) -> Metric[AllLinkMetrics]:
    """Defines a metric of both directions of each link."""

    def read(known: AllLinkMetrics) -> Readings:
        for link_name, link in known.links.items():
            for direction in DIRECTIONS:
                found = value(link, direction)
                if found is not None:
                    yield (link_name, direction), found

    return Metric(name, about, read, ("link", "direction"))


def _of_states(
    name: str, about: str, value: Callable[[LinkRecord], float]
) -> Metric[AllLinkMetrics]:
    """Defines a metric of links whose state is known."""
    return _of_links(name, about, lambda link: None if link.state is None else value(link.state))


def _of_queues(
    name: str, about: str, value: Callable[[QueueRecord], int]
) -> Metric[AllLinkMetrics]:
    """Defines a metric of a queue's counter, 0 before its first sample."""

    def of(link: LinkMetrics, direction: str) -> float:
        queue = link.directions[direction].queue
        return 0 if queue is None else value(queue)

    return _of_directions(name, about, of)


def _rate_bytes_per_s(link: LinkMetrics, direction: str) -> float | None:
    return None if link.state is None else link.state.rate_bps(direction) / 8


RATE = _of_directions(
    "linklab_link_rate_bytes_per_second",
    "Rate of a direction of the link as emulated, headers included; 0 in an outage.",
    _rate_bytes_per_s,
)

CAPACITY = _of_directions(
    "linklab_link_capacity_bytes_per_second",
    "What a direction of the link could carry in the last second, headers included.",
    lambda link, name: link.directions[name].last_second.per_second()[0],
)

USE = _of_directions(
    "linklab_link_use_bytes_per_second",
    "What left a direction's queue in the same second, headers included.",
    lambda link, name: link.directions[name].last_second.per_second()[1],
)

DELAY = _of_states(
    "linklab_link_delay_seconds",
    "One-way delay of the link, queues excluded.",
    lambda state: state.delay_s,
)

LOSS = _of_states(
    "linklab_link_loss_ratio",
    "Mean share of downlink packets that are lost.",
    lambda state: state.lost_ratio("down"),
)

UP = _of_states(
    "linklab_link_up",
    "Whether the link has a carrier.",
    lambda state: float(state.up),
)

CARRIERS = _of_states(
    "linklab_link_carriers",
    "Aggregated carriers of an LTE link.",
    lambda state: state.carriers,
)

QUEUE = _of_queues(
    "linklab_link_queue_bytes",
    "Bytes that wait in a direction of the link.",
    lambda queue: queue.queue_bytes,
)

SENT = _of_queues(
    "linklab_link_sent_bytes_total",
    "Bytes that left a direction's queue, headers included.",
    lambda queue: queue.sent_bytes,
)

DROPPED = _of_queues(
    "linklab_link_dropped_packets_total",
    "Packets that a direction's queue dropped.",
    lambda queue: queue.dropped_packets,
)

MARKED = _of_queues(
    "linklab_link_marked_packets_total",
    "Packets that a direction's queue discipline marked as congested (ECN CE).",
    lambda queue: (queue.discipline or {}).get(discipline.MARKED, 0),
)

DROPPED_EARLY = _of_queues(
    "linklab_link_early_dropped_packets_total",
    "Packets that a direction's queue discipline dropped before its queue was full.",
    lambda queue: (queue.discipline or {}).get(discipline.DROPPED_EARLY, 0),
)

LOST = _of_queues(
    "linklab_link_lost_packets_total",
    "Packets of a direction lost on the way, outages included.",
    lambda queue: queue.lost_packets,
)

HANDOVERS = _of_links(
    "linklab_link_handovers_total",
    "Times that the link left an access point.",
    lambda link: link.handovers,
)

OUTAGE = _of_links(
    "linklab_link_outage_seconds_total",
    "Time in which nothing could pass, noticed by the client or not.",
    lambda link: link.outage_s,
)

OUT = _of_links(
    "linklab_link_outage_ratio",
    "Share of the last second in which nothing could pass, noticed by the client or not.",
    lambda link: link.directions["down"].last_second.per_second()[2],
)

METRICS = declared(globals())
