"""Computes the least time in which a scenario's links could have delivered its payload. Pure.

The oracle knows every event in advance, and saturates all links from the client's start
(`full_load.py`). Its models and seed are those of the run.

It includes what no client can avoid: packet, TLS and HTTP/2 overhead, and the time of handshakes. It
leaves out what a better transport could avoid: slow start, loss recovery, and the handshakes' bytes.
Random losses do not matter. They happen before the bottleneck's queue, which has further packets.

The oracle knows `traffic` in the workload's direction. A call takes its rate. Pages take their mean
rate. What is left is shared equally by all long connections of others and one of the client. So an
efficiency above 1 beside long connections means that the client took more than an equal share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from linklab.core.frames import (
    ETHERNET_BYTES,
    IPV4_BYTES,
    IPV6_BYTES,
    UDP_BYTES,
    goodput_ratio,
)
from linklab.core.ip_family import IPV6
from linklab.links.full_load import Span, spans
from linklab.scenario import Scenario
from linklab.scenario.traffic import TrafficFlow

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
    """Returns the payload bytes that all links can have carried by `until_s`, without others' traffic:
    then it is the inverse of `oracle_s`. No smaller payload can be sure to last so long."""
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
    for from_s, to_s, rate in _free(scenario, spans(scenario, seed, links, start_s)):
        if rate > 0 and left <= rate * (to_s - from_s):
            return from_s + left / rate - start_s
        if math.isinf(to_s) or to_s - start_s > horizon_s:
            return math.inf
        left -= rate * (to_s - from_s)
    return math.inf


def _free(scenario: Scenario, full: Iterable[Span]) -> Iterator[tuple[float, float, float]]:
    """Yields from when to when the links carry how many payload bytes per second for the client
    beside the flows of others."""
    rivals = [one for one in scenario.traffic if one.direction == scenario.workload.direction]
    changes_s = sorted({t_s for one in rivals for t_s in (one.from_s, one.end_s)})
    for span in full:
        inside = (t_s for t_s in changes_s if span.start_s < t_s < span.end_s)
        from_s = span.start_s
        for to_s in (*inside, span.end_s):
            now = [one for one in rivals if one.from_s <= from_s < one.end_s]
            rates = span.payload_bytes_per_s.items()
            yield from_s, to_s, sum(_beside(scenario, link, rate, now) for link, rate in rates)
            from_s = to_s


def _beside(scenario: Scenario, link: str, rate: float, flows: Iterable[TrafficFlow]) -> float:
    """Returns what is left of a link's payload bytes per second for one connection."""
    families = scenario.links[link].families
    ip_bytes = IPV6_BYTES if IPV6 in families else IPV4_BYTES
    connections = 1
    for flow in flows:
        if flow.link != link:
            continue
        if flow.call is not None:
            frame_bytes = flow.call.packet_bytes + UDP_BYTES + ip_bytes + ETHERNET_BYTES
            rate -= frame_bytes / flow.call.interval_s * goodput_ratio(families)
        elif flow.web is not None:
            rate -= flow.web.mean_page_bytes / flow.web.pause_s
        elif flow.bulk is not None:
            connections += flow.bulk.connections
    return max(rate, 0.0) / connections
