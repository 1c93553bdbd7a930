"""What happened to a link between two of its states, in words for a run's events. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from linklab.core.link_state import LinkState

UNSEEN_KINDS = frozenset({"fade", "cap", "cross", "rate", "loss", "delay"})
"""Events of a scenario that `between` does not tell from what models do by themselves."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened to a link: its kind, and what it came to ("" where nothing more
    is to be said)."""

    kind: str
    detail: str = ""


def between(before: LinkState, after: LinkState) -> list[Happening]:
    """What a person would note down, seeing the link go from one state to the other.

    Rates, delays and losses that a model moves all the time are not among it.
    """
    found = []
    if before.up != after.up:
        found.append(Happening("carrier-up" if after.up else "carrier-down"))
    if before.blackout != after.blackout:
        found.append(Happening("outage" if after.blackout else "outage-end"))
    if after.access_point != before.access_point:
        if after.access_point:
            found.append(Happening("associated", after.access_point))
        else:
            found.append(Happening("handover", before.access_point))
    if before.lease != after.lease:
        found.append(Happening("address", str(after.lease)))
    if before.carriers != after.carriers:
        found.append(Happening("carriers", str(after.carriers)))
    if before.rrc != after.rrc:
        found.append(Happening("rrc", after.rrc))
    return found
