"""Simulates a scenario's links under full load in the direction of the workload. Pure.

Link models follow the load, so a link's capacity is only defined for a given load. The oracle and
`linklab plot` use this one: every link has one connection, which makes its handshakes. From then on
its queue is never empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from linklab.core.frames import FRAME_BYTES, ack_bytes, goodput_ratio
from linklab.core.link_state import Direction, LinkState
from linklab.links.stack import models
from linklab.models.layer import NO_LOAD, LinkModel, Load
from linklab.scenario import LinkSettings, Scenario

HANDSHAKE_ROUND_TRIPS = 3
"""TCP's handshake (RFC 9293 3.5), TLS 1.3's (RFC 8446 2), and the request up to the first
byte of its response."""

SEGMENTS_PER_ACK = 2
"""Delayed acknowledgements (RFC 9293 3.8.6.3)."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time from `start_s` to `end_s` without a change: each link's state and goodput."""

    start_s: float
    end_s: float
    states: dict[str, LinkState]
    payload_bytes_per_s: dict[str, float]


@dataclass(slots=True)
class _Link:
    model: LinkModel
    queue_bytes: int
    direction: Direction
    ack_bytes: int
    round_trips_left: float = HANDSHAKE_ROUND_TRIPS
    sent_bytes: float = 0.0

    def load(self, received_bytes: float, state: LinkState | None) -> Load:
        packets = self.sent_bytes / FRAME_BYTES
        acks = packets / SEGMENTS_PER_ACK
        shakes = self.round_trips_left > 0
        data = (round(self.sent_bytes), round(packets), 0 if shakes else self.queue_bytes)
        waits = state is None or state.hold_up or shakes
        answers = (
            round(acks * self.ack_bytes),
            round(acks),
            self.ack_bytes if waits else 0,
        )
        down, up = (data, answers) if self.direction == "down" else (answers, data)
        if self.direction == "up" and shakes:  # The client begins.
            down, up = (0, 0, 0), (0, 0, self.ack_bytes)
        return Load(
            down_bytes=down[0],
            down_packets=down[1],
            up_bytes=up[0],
            up_packets=up[1],
            down_backlog_bytes=0 if state is not None and state.loses_all("down") else down[2],
            up_backlog_bytes=0 if state is not None and state.loses_all("up") else up[2],
            received_bytes=round(received_bytes),
            connections=frozenset((1,)),
        )


@dataclass(slots=True)
class _Simulation:
    """The state of the simulation."""

    links: dict[str, _Link]
    states: dict[str, LinkState] = field(default_factory=dict)
    received_bytes: float = 0.0

    def ask(self, t_s: float, *, is_used: bool) -> float:
        """Updates every link's state to `t_s`, and returns when a model may change next."""
        for name, link in self.links.items():
            load = link.load(self.received_bytes, self.states.get(name)) if is_used else NO_LOAD
            self.states[name] = link.model.at(t_s, load)
        return min(link.model.next_s() for link in self.links.values())


def spans(
    scenario: Scenario, seed: int, links: Iterable[str], start_s: float = 0.0
) -> Iterator[Span]:
    """Yields the spans of the named links over time.

    There is no end, unless nothing can ever change again. Then the last span's `end_s` is infinite.
    Nothing is sent until the client starts at `start_s`. While packets pass, handshakes advance by
    the elapsed share of round trips. The delay is before the bottleneck, so a new rate counts at
    once.
    """
    made = models(scenario, seed)
    direction = scenario.workload.direction
    simulation = _Simulation(
        {
            name: _Link(
                made[name], _queue_bytes(one, direction), direction, ack_bytes(one.families)
            )
            for name, one in scenario.links.items()
            if name in set(links)
        }
    )
    t_s = 0.0
    while True:
        is_used = t_s >= start_s
        until_s = simulation.ask(t_s, is_used=is_used)
        if not is_used:
            until_s = min(until_s, start_s)
        for name, link in simulation.links.items() if is_used else ():
            state = simulation.states[name]
            if link.round_trips_left > 0 and _answers(state):
                until_s = min(until_s, t_s + link.round_trips_left * state.rtt_s)
        if until_s <= t_s:  # Handshakes without a delay end at once.
            until_s = t_s
        rates = {}
        for name, link in simulation.links.items():
            state = simulation.states[name]
            rates[name] = 0.0
            if not is_used or not state.passes(direction):
                continue
            if link.round_trips_left > 0:
                if _answers(state):
                    _advance_handshake(link, state, until_s - t_s)
            else:
                ratio = goodput_ratio(scenario.links[name].families)
                rates[name] = state.rate_bps(direction) / 8 * ratio
                link.sent_bytes += state.rate_bps(direction) / 8 * (until_s - t_s)
        if until_s > t_s:
            yield Span(t_s, until_s, dict(simulation.states), rates)
        if until_s == float("inf"):
            return
        simulation.received_bytes += sum(rates.values()) * (until_s - t_s)
        t_s = until_s


def _queue_bytes(link: LinkSettings, direction: str) -> int:
    return link.queue_down_bytes if direction == "down" else link.queue_up_bytes


def _answers(state: LinkState) -> bool:
    return state.passes("down") and state.passes("up")


def _advance_handshake(link: _Link, state: LinkState, time_s: float) -> None:
    rtt_s = state.rtt_s
    left = link.round_trips_left - time_s / rtt_s if rtt_s else 0.0
    link.round_trips_left = left if left > 1e-9 else 0.0
