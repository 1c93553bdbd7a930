"""Computes the typical rate of each link while it was used. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from linklab.core import statistics
from linklab.core.link_state import Direction
from linklab.core.records import QueueRecord

BIN_S: Final = 1.0
"""The thesis sampled once a second (thesis 3.3)."""


def median_rates_bps(
    samples: Iterable[QueueRecord],
    start_s: float,
    ends_s: Mapping[str, float],
    direction: Direction,
) -> dict[str, float]:
    """Returns for each link in `ends_s` the median of its rates per second in a direction, headers
    included. Only samples from the client's start to the link's end count, from the lab's counters.

    The first second, in which a connection is made, and the last, incomplete one are left out if
    there are others. A link that was used for less than a second has no rate.
    """
    sent: dict[str, list[tuple[float, int]]] = {link: [(start_s, 0)] for link in ends_s}
    for one in samples:
        if one.direction == direction and start_s < one.t_s <= ends_s.get(one.link, 0.0):
            sent[one.link].append((one.t_s, one.sent_bytes))
    rates = {link: _rates_bps(counts) for link, counts in sent.items()}
    return {link: statistics.median(found[1:] or found) for link, found in rates.items() if found}


def _rates_bps(counts: list[tuple[float, int]]) -> list[float]:
    """Returns a counter's rates over seconds, or over the next longer times between two samples."""
    rates = []
    begin_s, begin = counts[0]
    for t_s, total in counts[1:]:
        if t_s - begin_s >= BIN_S * 0.99:
            rates.append((total - begin) * 8 / (t_s - begin_s))
            begin_s, begin = t_s, total
    return rates
