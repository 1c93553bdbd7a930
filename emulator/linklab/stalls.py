"""How long a download stood still. Pure.

multilink writes down what each link has received every 100 ms; of other programs the lab's own
samples of the links' queues tell (`sample` of the scenario, 0.5 s). Waits that are shorter than
a sample do not show.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from linklab.records import ClientRecord, QueueRecord

CLIENT_SAMPLE_S = 0.1
"""How often multilink samples its links, while they are connected (client/README.md)."""

_FRAME_BYTES = 1514
"""A queue that sent less than a full frame between two samples brought no payload: what it sent
were acknowledgements and the like."""


def of_client(records: Iterable[ClientRecord]) -> float:
    """Seconds in which no link of multilink received anything, of its `client.jsonl`."""
    received: dict[str, int] = {}
    totals = [(0.0, 0)]
    for record in records:
        last_s, last_bytes = totals[-1]
        if record.event == "sample":
            if record.t_s - last_s > 2 * CLIENT_SAMPLE_S:  # No link had a connection.
                totals.append((record.t_s - CLIENT_SAMPLE_S, last_bytes))
            received[record.link] = record.received_bytes
            totals.append((record.t_s, sum(received.values())))
        elif record.event == "done":
            totals.append((record.t_s, last_bytes + 1))
    return _still_s(totals, 1)


def of_queues(records: Iterable[QueueRecord], end_s: float) -> float:
    """Seconds in which no link's downlink sent a frame, of `queues.jsonl` up to `end_s`."""
    sent: dict[str, int] = {}
    totals = []
    for record in records:
        if record.direction == "down" and record.t_s <= end_s:
            sent[record.link] = record.sent_bytes
            totals.append((record.t_s, sum(sent.values())))
    return _still_s(totals, _FRAME_BYTES)


def _still_s(totals: Iterable[tuple[float, int]], least_bytes: int) -> float:
    """The time between samples that differ by less than `least_bytes`, from the first arrival on:
    what comes before is the wait for a connection. Of one time the last sample counts, which knows
    of all links."""
    samples = list(dict(totals).items())
    return sum(
        to_s - from_s
        for (from_s, before), (to_s, after) in itertools.pairwise(samples)
        if before >= least_bytes and after - before < least_bytes
    )
