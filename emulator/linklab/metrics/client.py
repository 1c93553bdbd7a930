"""Defines the metrics of a transfer by multilink, under the names that multilink itself exports.
Pure.

`client/internal/metrics` counts the same events in the client's own process. Tests of both sides
compare their metrics with one golden file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from linklab.core.records import ClientRecord
from linklab.metrics.metric import Distribution, Metric, Readings, declared


@dataclass
class ClientLinkMetrics:
    """Holds the counters of one link."""

    requests: Counter[float] = field(default_factory=Counter)
    """Number of requests by the upper bound of their size's bucket."""
    requested_bytes: int = 0
    in_flight: int = 0
    sampled_bytes: int = 0
    ended_bytes: int = 0
    wasted_bytes: int = 0
    """Wasted bytes that this link carried."""
    late_bytes: int = 0
    """Bytes of cancelled requests, in addition to the bytes that arrived and were wasted."""
    failovers: int = 0
    rtt_s: float | None = None

    @property
    def arrived_bytes(self) -> int:
        """Returns the sampled or the final count. Samples come during requests, exact counts at
        their ends."""
        return max(self.sampled_bytes, self.ended_bytes)


class Client:
    """Counts the records of a download or upload over `links`.

    There are no series before the first record. So other programs never have any. The file has
    `size_bytes` unless a record gives a size. Uploads have no such record.
    """

    def __init__(self, links: Sequence[str], size_bytes: int = 0) -> None:
        self.has_begun = False
        self.links = {name: ClientLinkMetrics() for name in links}
        self._size_bytes = size_bytes
        self._resumed_bytes = 0

    def record(self, record: ClientRecord) -> None:
        """Counts a record."""
        self.has_begun = True
        if record.event == "size":
            self._size_bytes = record.bytes
            self._resumed_bytes = record.resumed_bytes
        if not record.link:
            return
        link = self.links.setdefault(record.link, ClientLinkMetrics())
        match record.event:
            case "request":
                link.in_flight += 1
                link.requests[REQUEST_SIZE.bucket_of(record.length)] += 1
                link.requested_bytes += record.length
            case "end":
                link.in_flight -= 1
                link.ended_bytes += record.bytes + record.wasted_bytes
                link.wasted_bytes += record.wasted_bytes
            case "late":
                link.late_bytes += record.bytes
            case "sample":
                link.sampled_bytes = record.received_bytes
                link.rtt_s = record.rtt_ns / 1e9
            case "failover":
                link.failovers += 1

    @property
    def progress_ratio(self) -> float:
        """The share of the file that has arrived, including the part that an earlier call left."""
        if self._size_bytes == 0:
            return 0.0
        useful = sum(link.arrived_bytes - link.wasted_bytes for link in self.links.values())
        return min(1.0, (self._resumed_bytes + useful) / self._size_bytes)


def _of_links(
    name: str,
    about: str,
    value: Callable[[ClientLinkMetrics], float | Distribution | None],
    buckets: tuple[float, ...] = (),
) -> Metric[Client]:
    """Defines a metric of each link."""

    def read(client: Client) -> Readings:
        for link_name, link in client.links.items() if client.has_begun else ():
            found = value(link)
            if found is not None:
                yield (link_name,), found

    return Metric(name, about, read, ("link",), buckets)


def _progress(client: Client) -> Readings:
    if client.has_begun:
        yield (), client.progress_ratio


RECEIVED = _of_links(
    "multilink_received_bytes_total",
    "Bytes of bodies that went over the link.",
    lambda link: link.arrived_bytes + link.late_bytes,
)

WASTED = _of_links(
    "multilink_wasted_bytes_total",
    "Bytes of bodies that came to no use.",
    lambda link: link.wasted_bytes + link.late_bytes,
)

REQUEST_SIZE = _of_links(
    "multilink_request_size_bytes",
    "Sizes of range requests.",
    lambda link: Distribution(link.requests, link.requested_bytes),
    buckets=tuple(float((16 << 10) * 4**n) for n in range(9)),
)

IN_FLIGHT = _of_links(
    "multilink_requests_in_flight",
    "Range requests sent and not ended.",
    lambda link: link.in_flight,
)

RTT = _of_links(
    "multilink_rtt_seconds",
    "Current round trip time of the link, queues included.",
    lambda link: link.rtt_s,
)

FAILOVERS = _of_links(
    "multilink_failovers_total",
    "Times that the link lost its work to others.",
    lambda link: link.failovers,
)

PROGRESS = Metric(
    "multilink_download_progress_ratio",
    "Part of the download, or upload, that has arrived.",
    _progress,
)

METRICS = declared(globals())
