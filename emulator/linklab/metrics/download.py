"""Defines the metrics of a transfer's progress, for any program. Pure.

multilink reports what it has received. For other programs the links' counters are used. They
include retransmissions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linklab.core.frames import goodput_ratio
from linklab.core.records import QueueRecord, Record
from linklab.metrics.client import Client
from linklab.metrics.last_second import LastSecond
from linklab.metrics.metric import Metric, Readings, declared, single


class Download:
    """Tracks a file of `size_bytes` in one direction, by `client`'s records or else by the queues'
    samples. `size_bytes` is None if nothing is transferred. Then there is no progress."""

    def __init__(
        self,
        link_names: Sequence[str],
        client: Client,
        size_bytes: int | None,
        direction: str,
        ratios: Mapping[str, float],
    ) -> None:
        self._client = client
        self._size_bytes = size_bytes
        self._direction = direction
        self._ratios = {name: ratios.get(name, goodput_ratio()) for name in link_names}
        self._carried_bytes = dict.fromkeys(link_names, 0.0)
        self._last_second = {name: LastSecond(1) for name in link_names}

    def record(self, record: Record) -> None:
        """Counts a record that `client` has counted already."""
        if isinstance(record, QueueRecord) and record.direction == self._direction:
            self._carried_bytes[record.link] = record.sent_bytes * self._ratios[record.link]
            self._last_second[record.link].read(record.t_s, self._arrived_bytes(record.link))

    def goodput_bytes_per_s(self) -> Readings:
        """Yields each link's goodput over the last second."""
        for name, last_second in self._last_second.items():
            yield (name,), max(0.0, *last_second.per_second())

    @property
    def progress_ratio(self) -> float | None:
        """The share of the file that has arrived, None without a file."""
        if self._client.has_begun:
            return self._client.progress_ratio
        if self._size_bytes is None:
            return None
        return min(1.0, sum(self._carried_bytes.values()) / self._size_bytes)

    def _arrived_bytes(self, link: str) -> float:
        if not self._client.has_begun:
            return self._carried_bytes[link]
        told = self._client.links[link]
        return told.arrived_bytes - told.wasted_bytes


GOODPUT = Metric[Download](
    "linklab_download_goodput_bytes_per_second",
    "Payload that came over the link in the last second: by multilink's word, or of other programs "
    "by the link's counters, what was sent twice included.",
    Download.goodput_bytes_per_s,
    ("link",),
)

PROGRESS = Metric[Download](
    "linklab_download_progress_ratio",
    "Part of the file that has arrived, by multilink's word or else by the links' counters.",
    lambda download: single(download.progress_ratio),
)

METRICS = declared(globals())
