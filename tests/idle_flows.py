"""Compares when a NAT and the relay to the outside forget flows with RFC 4787 and 5382.

What is expected is computed from the plan alone: a packet from the client reaches the NAT after its time
on the air and half a round trip, one from the server at once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from conftest import PROBES

UDP, TCP = 17, 6
SYN, ACK = 0x02, 0x10
RATE_BPS, RTT_NS = 80_000_000, 20_000_000
SECOND_NS = 10**9
FRAME_BYTES = {UDP: 14 + 20 + 8 + 4, TCP: 14 + 20 + 20}
MARGINS_NS = (1_000, 3_000, 30_000, 1_000_000)
"""How much less or more than the idle time flows are idle."""

APART_NS = 100_000
"""No two packets are closer to each other at the NAT, so none waits for another."""

Idle = Mapping[int, Sequence[tuple[int, int]]]
"""A protocol's idle times in ns, each from a time on."""

NAT_IDLE: Idle = {
    UDP: ((0, 2 * SECOND_NS), (9 * SECOND_NS, SECOND_NS), (15 * SECOND_NS, 5 * SECOND_NS)),
    TCP: ((0, 3 * SECOND_NS), (9 * SECOND_NS, 4 * SECOND_NS), (15 * SECOND_NS, SECOND_NS)),
}
RELAY_IDLE: Idle = {UDP: ((0, 120 * SECOND_NS),)}


class Event(NamedTuple):
    """A packet of a flow that is at the NAT at `t_ns`."""

    t_ns: int
    way: str
    protocol: int
    flow: int
    flags: int


def plan(seed: int, idle: Idle, flows: int, until_ns: int) -> list[Event]:
    """Returns packets of flows, idle for about as long as they may be, or for less."""
    dice = random.Random(seed)
    events: list[Event] = []
    taken = {at_ns // APART_NS for times in idle.values() for at_ns, _ in times}
    for flow in range(flows):
        protocol = dice.choice(list(idle))
        t_ns = SECOND_NS + dice.randrange(SECOND_NS)
        way, flags = "up", SYN
        while t_ns < until_ns:
            slot = t_ns // APART_NS
            if taken.isdisjoint((slot - 1, slot, slot + 1)):
                taken.add(slot)
                events.append(Event(t_ns, way, protocol, flow, flags))
                way, flags = dice.choice(("up", "down")), dice.choice((ACK, ACK, ACK, SYN))
            idle_ns = round(dice.choice((1, 1, 1, 0.3)) * dice.choice(idle[protocol])[1])
            margin_ns = dice.choice(MARGINS_NS) * dice.choice((-1, 1))
            begun = events and events[-1].flow == flow
            t_ns = (events[-1].t_ns + idle_ns + margin_ns) if begun else t_ns + APART_NS
    return sorted(events)


def expected(events: Sequence[Event], idle: Idle) -> dict[int, int]:
    """Returns the packets that arrive, by number, and the number of their mapping."""
    arrive: dict[int, int] = {}
    last_ns: dict[int, int] = {}
    mapping: dict[int, int] = {}
    alive: set[int] = set()
    for number, (t_ns, way, protocol, flow, flags) in enumerate(events):
        times = idle[protocol]
        # A flow is forgotten at the first moment of too long an idle time, whatever it is later.
        if flow in alive and any(
            max(at_ns, last_ns[flow] + least_ns) < (ends_ns if ends_ns <= t_ns else t_ns + 1)
            for (at_ns, least_ns), (ends_ns, _) in zip(
                times, [*times[1:], (t_ns + 1, 0)], strict=True
            )
        ):
            alive.discard(flow)
        if flow not in alive and way == "up" and (protocol == UDP or flags == SYN):
            alive.add(flow)
            mapping[flow] = number
        if flow in alive:
            last_ns[flow] = t_ns
            arrive[number] = mapping[flow]
    return arrive


def keys(idle: Idle) -> tuple[str, str]:
    """Returns the keys of a link with such a NAT, and the events that change it."""
    changes = [
        (at_ns, {UDP: udp, TCP: tcp}) for (at_ns, udp), (_, tcp) in zip(*idle.values(), strict=True)
    ]
    impair = [
        f"{{nat_udp: {ns[UDP] / 1e6:g} ms, nat_tcp: {ns[TCP] / 1e6:g} ms}}" for _, ns in changes
    ]
    events = "".join(
        f"  - {{at: {at_ns / 1e6:g} ms, link: wifi, impair_up: {key}}}\n"
        for (at_ns, _), key in zip(changes[1:], impair[1:], strict=True)
    )
    rate = f"{RATE_BPS / 1e6:g} Mbit/s"
    link = f"down: {rate}, up: {rate}, rtt: {RTT_NS / 1e6:g} ms, impair_up: {impair[0]}"
    return link, f"events:\n{events}"


def probe(file: Path, events: Sequence[Event], *relay: object) -> tuple[object, ...]:
    """Returns the words of `linklab` that send the packets, through the scenario's NAT or a relay."""
    sent = []
    for number, (t_ns, way, protocol, *rest) in enumerate(events):
        if way == "up" and not relay:
            t_ns -= FRAME_BYTES[protocol] * 8 * SECOND_NS // RATE_BPS + RTT_NS // 2
        sent.append((t_ns, number, way, protocol, *rest))
    planned = file.with_suffix(".plan.json")
    planned.write_text(json.dumps(sorted(sent)))
    return (file, "--timeout", "1h", "--", "python3", PROBES / "timers.py", planned, *relay)


def faults(run_dir: Path, events: Sequence[Event], idle: Idle) -> list[Event]:
    """Returns the packets that did not arrive as they should have, or from another port."""
    seen = dict(json.loads((run_dir / "timers.json").read_text()))
    wanted = expected(events, idle)
    wrong: list[Event] = []
    ports: dict[int, int] = {}
    for number, event in enumerate(events):
        mapping = wanted.get(number)
        is_right = (number in seen) == (mapping is not None)
        if is_right and mapping is not None and event.way == "up":
            is_new = ports.get(event.flow) != seen[number]
            is_right = is_new == (mapping == number)
            ports[event.flow] = seen[number]
        if not is_right:
            wrong.append(event)
    return wrong
