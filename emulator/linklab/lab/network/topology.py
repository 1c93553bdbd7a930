"""The lab's graph: which nodes and cables there are, and their addresses. Pure.

    client ──wlan0── ap ── isp ──── server          client ─rmnet0─ enb ── epc ──── server

Two middle nodes per link, so that nothing is shaped on an end host and rate and
delay live in separate qdiscs: the access node (ap, enb) holds rate and queue,
the core node (isp, epc) delay, jitter and loss. Where a scenario names several access
points, each is a node of its own and `air`, a bridge, joins the client to one of them:

                       ┌─ ap1 ─┐
    client ─wlan0─ air ┤       ├ isp ──── server
                       └─ ap2 ─┘

A kind's further links have nodes with a number: ap-1, isp-1, air-1, and the device wlan1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from linklab.scenario import LinkSettings

CLIENT = "client"
SERVER = "server"
SERVER_ADDRESS = "10.0.0.1"
SERVER_NAME = "server.linklab"
AIR = "air"

_FIRST = 100

LEASES = 250
"""How many addresses a client may get on a link, of the 254 of its network."""


@dataclass(frozen=True)
class Port:
    """One end of a cable: an interface of a node with its address (IPv4, /24).

    A port of a bridge has no address.
    """

    node: str
    interface: str
    address: str = ""


@dataclass(frozen=True)
class Access:
    """An access node: its ports towards the client and the core, and the core's towards it.

    `air` is the bridge's port that leads to it, None where the client hangs on it directly.
    """

    node: str
    down: Port
    up: Port
    core: Port
    air: Port | None = None


@dataclass(frozen=True)
class LinkPath:
    """The cables that one link is made of, from the client to the server.

    `table` is the client's routing table for traffic that leaves by this link, `priority` that of
    its route for all that names no link (the least one counts). `carrier` is the other end of the
    client's cable, whose state is the carrier that the client sees.
    """

    name: str
    device: str
    core: str
    table: int
    priority: int
    client: Port
    carrier: Port
    accesses: tuple[Access, ...]
    core_up: Port
    server: Port

    @property
    def client_network(self) -> str:
        """The addresses that the client may have on this link."""
        return f"{self.client.address.rpartition('.')[0]}.0/24"

    @property
    def cables(self) -> tuple[tuple[Port, Port], ...]:
        """The pairs of ports that are joined, client side first."""
        pairs = [(self.client, self.carrier)]
        for access in self.accesses:
            if access.air is not None:
                pairs.append((access.air, access.down))
            pairs.append((access.up, access.core))
        return (*pairs, (self.core_up, self.server))

    @property
    def nodes(self) -> list[str]:
        """The middle nodes, client side first."""
        air = self.accesses[0].air
        bridge = [] if air is None else [air.node]
        return [*bridge, *(access.node for access in self.accesses), self.core]

    def lease(self, number: int) -> str:
        """The client's address by how many it has had before on this link; the oldest one again
        after `LEASES`."""
        network, _, host = self.client.address.rpartition(".")
        return f"{network}.{int(host) + number % LEASES}"


def link_paths(links: Mapping[str, LinkSettings], first: str | None = None) -> dict[str, LinkPath]:
    """The path of every link of a scenario. What names no link takes the one called `first`, else
    the scenario's first."""
    paths = {}
    numbers: Counter[str] = Counter()
    for index, (name, link) in enumerate(links.items(), start=1):
        number = numbers[link.kind.name]
        numbers[link.kind.name] += 1
        path = _link_path(name, link, index, f"-{number}" if number else "")
        paths[name] = replace(path, priority=_FIRST) if name == first else path
    return paths


def _link_path(name: str, link: LinkSettings, index: int, suffix: str) -> LinkPath:
    """The path of a scenario's link number `index`; `suffix` tells its nodes from others."""
    net, device = f"10.{index}", link.device
    core, air = f"{link.kind.core}{suffix}", f"{AIR}{suffix}"
    points = link.access_points
    nodes = points if len(points) > 1 else [f"{link.kind.access}{suffix}"]
    accesses = []
    for number, node in enumerate(nodes):
        backhaul = f"{net}.{1 if number == 0 else 10 + number}"
        accesses.append(
            Access(
                node=node,
                down=Port(node, f"{node}-{device}", f"{net}.0.1"),
                up=Port(node, f"{node}-{core}", f"{backhaul}.1"),
                core=Port(core, f"{core}-{node}", f"{backhaul}.2"),
                air=Port(air, f"air-{node}") if len(nodes) > 1 else None,
            )
        )
    return LinkPath(
        name=name,
        device=device,
        core=core,
        table=_FIRST + index,
        priority=_FIRST + index,
        client=Port(CLIENT, device, f"{net}.0.2"),
        carrier=Port(air, f"air-{device}") if len(nodes) > 1 else accesses[0].down,
        accesses=tuple(accesses),
        core_up=Port(core, f"{core}-server", f"{net}.2.1"),
        server=Port(SERVER, f"server-{core}", f"{net}.2.2"),
    )
