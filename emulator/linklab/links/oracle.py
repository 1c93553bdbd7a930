"""The least time in which a scenario's links could have delivered its payload. Pure.

The oracle knows every event in advance and keeps all links saturated from the client's start
(`full_load.py`), over the same models and seed that the player applies. What no client can
avoid is included: packet, TLS and HTTP/2 overhead, and the handshakes before the first byte.
What a better transport could avoid is not: slow start, loss recovery, bytes of the handshakes
themselves. Random loss strikes before the bottleneck's queue, where further packets wait, so
it does not lower the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from linklab.links.full_load import spans
from linklab.scenario import Scenario

HORIZON_S = 3600.0
"""Links that have not delivered everything by then never will, as far as nobody saw them do it."""


def oracle_s(
    scenario: Scenario, seed: int = 1, start_s: float = 0.0, horizon_s: float = HORIZON_S
) -> float:
    """Seconds for the payload over all links, of a client that starts at `start_s`; infinite where
    they do not deliver it within `horizon_s`."""
    return _least_time(scenario, seed, scenario.links, start_s, horizon_s)


def single_link_s(scenario: Scenario, link: str, seed: int = 1) -> float:
    """Seconds for the payload over `link` alone; infinite where it does not deliver it within
    HORIZON_S.

    Raises KeyError for a link that the scenario lacks.
    """
    if link not in scenario.links:
        raise KeyError(link)
    return _least_time(scenario, seed, [link], 0.0, HORIZON_S)


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
