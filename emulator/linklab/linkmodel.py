"""What a link is at every instant: link models turn a scenario into link states. Pure.

A model knows no clock, socket or file. The player asks for the initial states and for the
changes in time order, and applies them; the oracle integrates the same list, so that both
see the same links.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TypeVar

from linklab.scenario import Event, LinkSettings, Scenario

T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class LinkState:
    """A link at one instant. Rates count whole packets with the Ethernet header, as sch_htb.

    `up` is the carrier: while it is down nothing passes in either direction. `delay_s` is
    one way and the same both ways, `jitter_s` how far it strays (tc-netem), `loss_ratio`
    the share of downlink packets lost.
    """

    up: bool
    down_rate_bps: int
    up_rate_bps: int
    delay_s: float
    jitter_s: float
    loss_ratio: float


@dataclass(frozen=True, slots=True)
class Change:
    """From `t_s` seconds after the start on, `link` is in `state` (the whole of it)."""

    t_s: float
    link: str
    state: LinkState


def _initial(link: LinkSettings) -> LinkState:
    return LinkState(
        up=True,
        down_rate_bps=link.down_rate_bps,
        up_rate_bps=link.up_rate_bps,
        delay_s=link.rtt_s / 2,
        jitter_s=link.jitter_s,
        loss_ratio=link.loss_ratio,
    )


def _after(state: LinkState, event: Event) -> LinkState:
    return replace(
        state,
        up=state.up if event.carrier is None else event.carrier == "up",
        down_rate_bps=_or(event.down_rate_bps, state.down_rate_bps),
        up_rate_bps=_or(event.up_rate_bps, state.up_rate_bps),
        delay_s=state.delay_s if event.rtt_s is None else event.rtt_s / 2,
        jitter_s=_or(event.jitter_s, state.jitter_s),
        loss_ratio=_or(event.loss_ratio, state.loss_ratio),
    )


def _or(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def initial_states(scenario: Scenario) -> dict[str, LinkState]:
    """Each link's state at the start; an event at 0 s is a change, not part of this."""
    return {name: _initial(link) for name, link in scenario.links.items()}


def changes(scenario: Scenario) -> list[Change]:
    """Every change in time order; at the same instant in the order of the scenario."""
    states = initial_states(scenario)
    result = []
    for event in sorted(scenario.events, key=lambda event: event.at_s):
        states[event.link] = _after(states[event.link], event)
        result.append(Change(event.at_s, event.link, states[event.link]))
    return result


def seed_for(run_seed: int, *names: str) -> int:
    """A 64-bit seed for the part of a run that `names` describe, such as ("wifi", "loss").

    Derived from the names and not from an order, so that a further link or qdisc leaves
    everybody else's randomness as it was (the way of the Shadow simulator's host seeds).
    """
    digest = hashlib.sha256(f"linklab seed {run_seed}".encode())
    for name in names:
        encoded = name.encode()
        digest.update(b"\0%d\0" % len(encoded) + encoded)
    return int.from_bytes(digest.digest()[:8], "big")
