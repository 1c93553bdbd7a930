"""The lab's graph: which nodes and cables there are, and their addresses. Pure.

    client ──wlan0── ap ── isp ──── server          client ─rmnet0─ enb ── epc ──── server

Two middle nodes per link, so that nothing is shaped on an end host and rate and
delay live in separate qdiscs: the access node (ap, enb) holds rate and queue,
the core node (isp, epc) delay, jitter and loss. Where a scenario names several access
points, each is a node of its own and `air`, a bridge, joins the client to one of them:

                       ┌─ ap1 ─┐
    client ─wlan0─ air ┤       ├ isp ──── server
                       └─ ap2 ─┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CLIENT = "client"
SERVER = "server"
SERVER_ADDRESS = "10.0.0.1"
SERVER_NAME = "server.linklab"
AIR = "air"

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

    `table` is the client's routing table for traffic that leaves by this link. `carrier` is
    the other end of the client's cable, whose state is the carrier that the client sees.
    """

    name: str
    device: str
    core: str
    table: int
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
        air = [AIR] if self.accesses[0].air is not None else []
        return [*air, *(access.node for access in self.accesses), self.core]

    def lease(self, number: int) -> str:
        """The client's address by how many it has had before on this link; the oldest one again
        after `LEASES`."""
        network, _, host = self.client.address.rpartition(".")
        return f"{network}.{int(host) + number % LEASES}"


@dataclass(frozen=True)
class _Link:
    index: int
    name: str
    device: str
    access: str
    core: str


_LINKS = {
    link.name: link
    for link in (
        _Link(1, "wifi", "wlan0", "ap", "isp"),
        _Link(2, "lte", "rmnet0", "enb", "epc"),
    )
}


def link_path(name: str, access_points: Sequence[str] = ()) -> LinkPath:
    """The path of a link; `access_points` name its access nodes where it has several."""
    link = _LINKS[name]
    net, core, device = f"10.{link.index}", link.core, link.device
    nodes = access_points if len(access_points) > 1 else [link.access]
    accesses = []
    for number, node in enumerate(nodes):
        backhaul = f"{net}.{1 if number == 0 else 10 + number}"
        accesses.append(
            Access(
                node=node,
                down=Port(node, f"{node}-{device}", f"{net}.0.1"),
                up=Port(node, f"{node}-{core}", f"{backhaul}.1"),
                core=Port(core, f"{core}-{node}", f"{backhaul}.2"),
                air=Port(AIR, f"air-{node}") if len(nodes) > 1 else None,
            )
        )
    return LinkPath(
        name=name,
        device=device,
        core=core,
        table=100 + link.index,
        client=Port(CLIENT, device, f"{net}.0.2"),
        carrier=Port(AIR, f"air-{device}") if len(nodes) > 1 else accesses[0].down,
        accesses=tuple(accesses),
        core_up=Port(core, f"{core}-server", f"{net}.2.1"),
        server=Port(SERVER, f"server-{core}", f"{net}.2.2"),
    )


LINK_PATHS = {name: link_path(name) for name in _LINKS}
"""The links' paths where nothing roams."""
