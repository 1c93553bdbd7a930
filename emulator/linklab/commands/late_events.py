"""Says which events of a scenario come after the end of a run, and so have no effect."""

from __future__ import annotations

from collections.abc import Sequence

from linklab.core import units
from linklab.links import oracle
from linklab.models import events as link_events
from linklab.models.events import Event
from linklab.scenario import Scenario

_MOST = 5
"""The most events that are named."""


def after(scenario: Scenario, end_s: float) -> list[Event]:
    """Returns the events that begin after `end_s`, or after more bytes than the payload has."""
    size = scenario.payload.size_bytes
    return [
        one
        for one in scenario.events
        if (one.at_s is not None and one.at_s > end_s)
        or (one.after_bytes is not None and one.after_bytes > size)
    ]


def least_s(scenario: Scenario) -> float:
    """Returns the least time that a run takes; infinite if it lasts beyond the last event."""
    last_s = max((one.at_s for one in scenario.events if one.at_s is not None), default=0.0)
    own_s = scenario.workload.own_s(scenario.payload.size_bytes)
    if own_s > last_s:
        return float("inf")
    return max(oracle.oracle_s(scenario, horizon_s=last_s), own_s)


def in_words(events: Sequence[Event], when: str) -> list[str]:
    """Describes such events line by line; nothing if there are none."""
    if not events:
        return []
    said = [f"{_count(len(events))} after {when}:"]
    said += [f"  {_moment(one)}, {one.link}: {link_events.in_words(one)}" for one in events[:_MOST]]
    if len(events) > _MOST:
        said.append(f"  … and {len(events) - _MOST} more")
    return said


def _count(number: int) -> str:
    return "1 event comes" if number == 1 else f"{number} events come"


def _moment(event: Event) -> str:
    if event.at_s is not None:
        return f"at {units.format_duration(event.at_s)}"
    return f"after {units.format_size(event.after_bytes or 0)}, more than the payload"
