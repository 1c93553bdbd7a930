"""How long a download stood still. Pure.

It is the lab that tells, by its samples of the links' queues, and not the program, which may read
what arrives late and in large parts. Waits that are shorter than a sample (`sample` of the
scenario, 0.5 s) do not show.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from linklab.core.frames import FRAME_BYTES
from linklab.core.records import QueueRecord


def stalled_s(records: Iterable[QueueRecord], end_s: float, direction: str = "down") -> float:
    """Seconds up to `end_s` in which no link carried a frame in a direction, of `queues.jsonl`.

    What comes before the first arrival is the wait for a connection, and no stall. Queues that
    together sent less than a full frame between two samples brought no payload: what they sent were
    acknowledgements and the like.
    """
    sent: dict[str, int] = {}
    totals: dict[float, int] = {}
    for record in records:
        if record.direction == direction and record.t_s <= end_s:
            sent[record.link] = record.sent_bytes
            totals[record.t_s] = sum(sent.values())  # Of one time the last knows all links.
    return sum(
        to_s - from_s
        for (from_s, before), (to_s, after) in itertools.pairwise(totals.items())
        if before >= FRAME_BYTES and after - before < FRAME_BYTES
    )
