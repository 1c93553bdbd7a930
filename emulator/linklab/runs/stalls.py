"""Computes how long a download made no progress. Pure.

The measure are the lab's samples of the links' queues, because a program may read late and in large
parts. Stalls shorter than a sample (`sample` of the scenario, 0.5 s) are not seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from linklab.core.frames import FRAME_BYTES
from linklab.core.records import QueueRecord


def stalled_s(records: Iterable[QueueRecord], end_s: float, direction: str = "down") -> float:
    """Returns the seconds up to `end_s` in which no link carried a frame in a direction, from
    `queues.jsonl`.

    The time before the first arrival is connection set-up and does not count. If all queues
    together sent less than a full frame between two samples, they carried no payload, only
    acknowledgements and the like.
    """
    sent: dict[str, int] = {}
    totals: dict[float, int] = {}
    for record in records:
        if record.direction == direction and record.t_s <= end_s:
            sent[record.link] = record.sent_bytes
            totals[record.t_s] = sum(sent.values())  # The last record of a time covers all links.
    return sum(
        to_s - from_s
        for (from_s, before), (to_s, after) in itertools.pairwise(totals.items())
        if before >= FRAME_BYTES and after - before < FRAME_BYTES
    )
