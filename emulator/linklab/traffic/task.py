"""Describes the two ends of each flow of a scenario's traffic, for the program `end.py`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypedDict

from linklab.models import draws
from linklab.models.seeds import random_for
from linklab.scenario import Scenario
from linklab.scenario.tcp import Ends
from linklab.scenario.traffic import PAGE_SIGMA, TrafficFlow

PROGRAM: Final = Path(__file__).with_name("end.py")

FIRST_PORT: Final = 5201
"""The server's port of the first flow, that of iperf3. Each further flow has the next one."""

_PAGES: Final = 500
"""The number of pages that are drawn. After them they repeat."""


class EndTask(TypedDict):
    """Describes one end of a flow.

    The server's end `listens` on `address` and `port`, the other one connects to them over `device`.
    `sends` tells whether this end sends the data. Times are nanoseconds. `from_ns` and `to_ns` count
    from the scenario's start; `to_ns` is None for the run's end. `congestion_control` is the sender's.
    `pages` has each page's bytes and the pause behind it.
    """

    kind: str
    listens: bool
    sends: bool
    address: str
    port: int
    device: str
    from_ns: int
    to_ns: int | None
    congestion_control: str
    connections: int
    pages: list[tuple[int, int]]
    packet_bytes: int
    rate_bps: int


def tasks(
    scenario: Scenario, seed: int, addresses: Mapping[str, str], devices: Mapping[str, str]
) -> list[tuple[EndTask, EndTask]]:
    """Returns the tasks of each flow: of the server's end, and of the other end. `addresses` has the
    server's address for each link, `devices` the link's device on the other host."""
    found = []
    for number, flow in enumerate(scenario.traffic):
        task = _task(flow, number, seed, scenario.tcp.congestion_control)
        task["address"], task["device"] = addresses[flow.link], devices[flow.link]
        task["port"] = FIRST_PORT + number
        is_down = flow.direction == "down"
        server: EndTask = {**task, "listens": True, "sends": is_down}
        other: EndTask = {**task, "listens": False, "sends": not is_down}
        found.append((server, other))
    return found


def _task(flow: TrafficFlow, number: int, seed: int, controls: Ends) -> EndTask:
    """Returns what both ends of a flow have in common."""
    # The host's own may be another: a client with Multipath TCP sets one for its connections.
    control = controls.server if flow.direction == "down" else controls.client
    task = EndTask(
        kind=flow.kind,
        listens=False,
        sends=False,
        address="",
        port=0,
        device="",
        from_ns=_nanoseconds(flow.from_s),
        to_ns=None if flow.to_s is None else _nanoseconds(flow.to_s),
        congestion_control=flow.congestion_control or control,
        connections=1,
        pages=[],
        packet_bytes=0,
        rate_bps=0,
    )
    if flow.bulk is not None:
        task["connections"] = flow.bulk.connections
    if flow.web is not None:
        random = random_for(seed, "traffic", str(number))
        task["connections"] = flow.web.connections
        task["pages"] = [
            (
                max(1, round(draws.lognormal(random, flow.web.page_bytes, PAGE_SIGMA))),
                _nanoseconds(draws.exponential(random, flow.web.pause_s)),
            )
            for _ in range(_PAGES)
        ]
    if flow.call is not None:
        task["packet_bytes"] = flow.call.packet_bytes
        task["rate_bps"] = flow.call.rate_bps
    return task


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
