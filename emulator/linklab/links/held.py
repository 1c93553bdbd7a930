"""Computes the most bytes that a scenario's links hold. Pure."""

from __future__ import annotations

from linklab.core.link_state import DIRECTIONS
from linklab.models import impairments
from linklab.models.impairments import Impairing
from linklab.scenario import Scenario

_MOST_JITTERS = 4
"""The deviation from a mean delay that nearly all packets stay below."""


def _added_s(impairing: Impairing) -> float:
    both = (impairments.of(impairing, direction) for direction in DIRECTIONS)
    return max(
        (one.delay_s or 0.0) + _MOST_JITTERS * (one.jitter_s or 0.0) if one else 0.0 for one in both
    )


def held_bytes(scenario: Scenario) -> int:
    """Returns the bytes of packets if all queues are full and all links carry their highest rate.

    Both directions count, with the longest delay. Higher rates by a trace or a model are left out.
    """
    total = 0
    further_s = max(one.added_rtt_s for one in scenario.clients) / 2
    for name, link in scenario.links.items():
        events = [event for event in scenario.events if event.link == name]
        down_bps = max(link.down_rate_bps, *(one.down_rate_bps or 0 for one in events), 0)
        up_bps = max(link.up_rate_bps, *(one.up_rate_bps or 0 for one in events), 0)
        rtt_s = max(link.rtt_s, *(one.rtt_s or 0.0 for one in events), 0.0)
        jitter_s = max(link.jitter_s, *(one.jitter_s or 0.0 for one in events), 0.0)
        added_s = max(_added_s(link), *map(_added_s, events), 0.0)
        delayed = round((down_bps + up_bps) / 8 * (rtt_s / 2 + jitter_s + added_s + further_s))
        resized = [one.queue_bytes or 0 for one in events]
        queues = max(link.queue_down_bytes, *resized, 0) + max(link.queue_up_bytes, *resized, 0)
        total += queues + delayed
    return total
