"""Computes the least time in which a scenario's links could have delivered its payload. Pure.

The oracle knows every event in advance, and saturates all links from the client's start
(`full_load.py`). Its models and seed are those of the run.

It includes what no client can avoid: packet, TLS and HTTP/2 overhead, and the time of handshakes. It
leaves out what a better transport could avoid: slow start, loss recovery, and the handshakes' bytes.
Random losses do not matter. They happen before the bottleneck's queue, which has further packets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from linklab.links.full_load import spans
from linklab.scenario import Scenario

HORIZON_S = 3600.0
"""Links that have not delivered everything by then count as never delivering it."""


def oracle_s(
    scenario: Scenario, seed: int = 1, start_s: float = 0.0, horizon_s: float = HORIZON_S
) -> float:
    """Returns the seconds for the payload over all links, for a client that starts at `start_s`.

    The result is infinite if the links do not deliver it within `horizon_s`.
    """
    return _least_time(scenario, seed, scenario.links, start_s, horizon_s)


def single_link_s(scenario: Scenario, link: str, seed: int = 1) -> float:
    """Returns the seconds for the payload over `link` alone; infinite beyond HORIZON_S.

    Raises KeyError if the scenario lacks the link.
    """
    if link not in scenario.links:
        raise KeyError(link)
    return _least_time(scenario, seed, [link], 0.0, HORIZON_S)


def carried_bytes(scenario: Scenario, until_s: float, seed: int = 1) -> float:
    """Returns the payload bytes that all links can have carried by `until_s`, the inverse of
    `oracle_s`. No smaller payload can be sure to last so long."""
    total = 0.0
    for span in spans(scenario, seed, scenario.links):
        length_s = min(span.end_s, until_s) - span.start_s
        total += sum(span.payload_bytes_per_s.values()) * length_s
        if span.end_s >= until_s:
            break
    return total


def _least_time(
    scenario: Scenario, seed: int, links: Iterable[str], start_s: float, horizon_s: float
) -> float:
    left = float(scenario.payload.size_bytes)
    for span in spans(scenario, seed, links, start_s):
        rate = sum(span.payload_bytes_per_s.values())
        if rate > 0 and left <= rate * (span.end_s - span.start_s):
            return span.start_s + left / rate - start_s
        if math.isinf(span.end_s) or span.end_s - start_s > horizon_s:
            return math.inf
        left -= rate * (span.end_s - span.start_s)
    return math.inf
