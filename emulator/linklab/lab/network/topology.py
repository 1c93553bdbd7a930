"""Defines the lab's graph: nodes, cables and addresses. Pure.

    client ──wlan0── ap ── isp ──── server          client ─rmnet0─ enb ── epc ──── server

Each link has two middle nodes, so that end hosts shape nothing, and rate and delay have separate
qdiscs. The access node (ap, enb) holds rate and queue. The core node (isp, epc) holds delay, jitter
and loss. If a scenario names several access points, each is a node of its own. `air`, a bridge,
connects the client to one of them:

                       ┌─ ap1 ─┐
    client ─wlan0─ air ┤       ├ isp ──── server
                       └─ ap2 ─┘

If a scenario impairs a link, a middlebox stands between core and server. It holds what `impair_down`
and `impair_up` ask for:

    client ──wlan0── ap ── isp ── isp-mid ──── server

Other hosts may share a link. They stand behind the same bridge, so their packets wait in the same
queues:

    client ──wlan0─┐
                   air ── ap ── isp ──── server
     other ──wlan0─┘

Both ends of another client's cable delay its packets if it has an `added_rtt`. The nodes of a kind's
further links have a number: ap-1, isp-1, air-1, and the device wlan1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from linklab.core.ip_family import IPV6, ONLY_IPV4, Families, in_family
from linklab.core.link_kinds import WIFI
from linklab.scenario import LinkSettings, Scenario

CLIENT = "client"
SERVER = "server"
SERVER_ADDRESS = "10.0.0.1"
SERVER_NAME = "server.linklab"
AIR = "air"
OTHER = "other"
"""The host that sends and receives a scenario's traffic."""

OUTSIDE = "outside"
"""The node behind the server that leads outside, if a lab does."""

EVERY_ADDRESS = "::"
"""Stands for all addresses of both families in a server that takes both by one socket."""

_FIRST = 100

_FIRST_OWN = 2
"""The last number of the client's first address on a link."""

LEASES = 200
"""The number of addresses that a client may use on a link, of the 254 in its network. Other hosts
have the addresses behind them."""


@dataclass(frozen=True)
class Port:
    """One end of a cable: an interface of a node with its address of the plan (`core/ip_family.py`).

    `families` are those in which it has the address. A port of a bridge has none.
    """

    node: str
    interface: str
    address: str = ""
    families: Families = ONLY_IPV4


FORMER = Port(CLIENT, "former")
"""Packets for former addresses of the client have its MAC. So the client drops and counts them."""


@dataclass(frozen=True)
class Access:
    """An access node: its ports towards the client and the core, and the core's port towards it.

    `air` is the bridge's port that leads to the node, None if the client is connected directly.
    """

    node: str
    down: Port
    up: Port
    core: Port
    air: Port | None = None


@dataclass(frozen=True)
class Station:
    """Another host on the client's bridge: its port, and the bridge's port towards it."""

    host: Port
    air: Port


@dataclass(frozen=True)
class Middlebox:
    """A node between core and server: its ports towards both."""

    node: str
    down: Port
    up: Port


@dataclass(frozen=True)
class LinkPath:
    """The cables of one link, from the client to the server.

    `table` is the client's routing table for traffic over this link. `priority` is that of its
    default route. The smallest one wins. `carrier` is the other end of the client's cable. Its
    state is the carrier that the client sees. `stations` are the other hosts on the link. `server`
    is the server's port, and `border` the other end of its cable.
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
    middlebox: Middlebox | None = None
    stations: tuple[Station, ...] = ()

    @property
    def hosts(self) -> tuple[Port, ...]:
        return (self.client, *(station.host for station in self.stations))

    @property
    def carriers(self) -> tuple[Port, ...]:
        """The other ends of their cables."""
        return (self.carrier, *(station.air for station in self.stations))

    @property
    def border(self) -> Port:
        """The other end of the server's cable."""
        return self.core_up if self.middlebox is None else self.middlebox.up

    @property
    def after_core(self) -> Port:
        """The other end of the core's cable towards the server."""
        return self.server if self.middlebox is None else self.middlebox.down

    @property
    def client_network(self) -> str:
        """The plan's network of the client's addresses on this link."""
        return f"{self.client.address.rpartition('.')[0]}.0/24"

    @property
    def families(self) -> Families:
        return self.client.families

    @property
    def cables(self) -> tuple[tuple[Port, Port], ...]:
        pairs = list(zip(self.hosts, self.carriers, strict=True))
        for access in self.accesses:
            if access.air is not None:
                pairs.append((access.air, access.down))
            pairs.append((access.up, access.core))
        if self.middlebox is not None:
            pairs.append((self.core_up, self.middlebox.down))
        return (*pairs, (self.border, self.server))

    @property
    def nodes(self) -> list[str]:
        """The middle nodes, client side first."""
        air = self.accesses[0].air
        bridge = [] if air is None else [air.node]
        middlebox = [] if self.middlebox is None else [self.middlebox.node]
        return [*bridge, *(access.node for access in self.accesses), self.core, *middlebox]

    def lease(self, number: int) -> str:
        """Returns the client's address of the plan after `number` address changes on this link. It
        repeats after `LEASES`."""
        network, _, host = self.client.address.rpartition(".")
        return f"{network}.{int(host) + number % LEASES}"


def server_addresses(families: Families) -> tuple[str, ...]:
    """Returns the server's one address in each family."""
    return tuple(in_family(SERVER_ADDRESS, family) for family in families)


def server_in_url(families: Families) -> str:
    """Returns the server as a URL has it: its IPv4 address, or with IPv6 its name, which the
    certificate has too."""
    return SERVER_NAME if IPV6 in families else SERVER_ADDRESS


def client_host(number: int) -> str:
    """Returns the name of the host of a client, from 1."""
    return CLIENT if number == 1 else f"{CLIENT}-{number}"


def others_of(scenario: Scenario) -> dict[str, list[str]]:
    """Returns the names of the hosts that share a link with the client, by link."""
    clients = [client_host(number) for number in range(2, len(scenario.clients) + 1)]
    flowing = {flow.link for flow in scenario.traffic}
    return {
        link: [*clients, *([OTHER] if link in flowing else [])] for link in scenario.shared_links
    }


def link_paths(
    links: Mapping[str, LinkSettings],
    first: str | None = None,
    impaired: Collection[str] = (),
    others: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, LinkPath]:
    """Returns the path of every link of a scenario. Traffic that names no link takes `first`, else
    the scenario's first link. Links that may be `impaired` have a middlebox. `others` has the names
    of the hosts that share a link with the client, by link."""
    paths = {}
    numbers: Counter[str] = Counter()
    for index, (name, link) in enumerate(links.items(), start=1):
        number = numbers[link.kind.name]
        numbers[link.kind.name] += 1
        own = others.get(name, ())
        path = _link_path(name, link, index, f"-{number}" if number else "", own)
        if name in impaired:
            path = _with_middlebox(path, index)
        paths[name] = replace(path, priority=_FIRST) if name == first else path
    return paths


def _link_path(
    name: str, link: LinkSettings, index: int, suffix: str, others: Collection[str]
) -> LinkPath:
    """Returns the path of a scenario's link number `index`. `suffix` makes its nodes' names unique."""
    net, device, families = f"10.{index}", link.device, link.families
    core = f"{link.kind.core}{suffix}"
    air = f"{AIR}{suffix}" if link.kind == WIFI else f"{AIR}-{link.kind.access}{suffix}"
    points = link.access_points
    nodes = points if len(points) > 1 else [f"{link.kind.access}{suffix}"]
    is_bridged = len(nodes) > 1 or bool(others)
    accesses = []
    for number, node in enumerate(nodes):
        backhaul = f"{net}.{1 if number == 0 else 10 + number}"
        accesses.append(
            Access(
                node=node,
                down=Port(node, f"{node}-{device}", f"{net}.0.1", families),
                up=Port(node, f"{node}-{core}", f"{backhaul}.1", families),
                core=Port(core, f"{core}-{node}", f"{backhaul}.2", families),
                air=Port(air, f"air-{node}") if is_bridged else None,
            )
        )
    return LinkPath(
        name=name,
        device=device,
        core=core,
        table=_FIRST + index,
        priority=_FIRST + index,
        client=Port(CLIENT, device, f"{net}.0.{_FIRST_OWN}", families),
        carrier=Port(air, f"air-{device}") if is_bridged else accesses[0].down,
        accesses=tuple(accesses),
        core_up=Port(core, f"{core}-server", f"{net}.2.1", families),
        server=Port(SERVER, f"server-{core}", f"{net}.2.2", families),
        stations=tuple(
            Station(
                Port(host, device, f"{net}.0.{_FIRST_OWN + LEASES + number}", families),
                Port(air, f"air-{device}-{number + 2}"),
            )
            for number, host in enumerate(others)
        ),
    )


def _with_middlebox(path: LinkPath, index: int) -> LinkPath:
    """Puts a middlebox between the core of link number `index` and the server."""
    node, net, families = f"{path.core}-mid", f"10.{index}.3", path.families
    return replace(
        path,
        core_up=Port(path.core, f"{path.core}-mid", f"{net}.1", families),
        middlebox=Middlebox(
            node=node,
            down=Port(node, f"mid-{path.core}", f"{net}.2", families),
            up=replace(path.core_up, node=node, interface="mid-server"),
        ),
    )
