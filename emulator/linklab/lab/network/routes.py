"""Routes between the client and the server through a link."""

from __future__ import annotations

import socket
from typing import Final

from linklab.core.ip_family import Families, in_family
from linklab.core.link_state import DIRECTIONS, Direction
from linklab.lab.kernel import rtnetlink
from linklab.lab.network import topology
from linklab.lab.network.hosts import Host
from linklab.lab.network.topology import SERVER_ADDRESS, LinkPath, Port

EVERYWHERE: Final = "0.0.0.0/0"
_SERVICE_PORTS, _ASKING_PORTS = (1, 32767), (32768, 60999)
"""Ports of services, and ports that Linux gives sockets without one (ip_local_port_range)."""


def add_route(
    host: Host,
    own: Port,
    gateway: Port,
    network: str,
    families: Families | None = None,
    mtu_bytes: int | None = None,
) -> None:
    """Sets a host's route to a network of the plan, in `families`, or in those of its port. The host
    tells the senders of packets larger than `mtu_bytes`."""
    index = host.indices[own.interface]
    for family in own.families if families is None else families:
        there, by = in_family(network, family), in_family(gateway.address, family)
        host.channel.request(rtnetlink.set_route(there, by, index, mtu_bytes=mtu_bytes))


def route_host(host: Host, path: LinkPath) -> None:
    """Sets the routes of a host on a link: default routes in the link's own table and, with the
    link's priority, in the main table, and one to the server's end of the link (`_route_server`)."""
    index = host.indices[path.device]
    for family in path.families:
        gateway = in_family(path.accesses[0].down.address, family)
        everywhere = in_family(EVERYWHERE, family)
        for message in (
            rtnetlink.set_route(everywhere, gateway, index, table=path.table),
            rtnetlink.set_route(everywhere, gateway, index, priority=path.priority),
            rtnetlink.set_route(in_family(f"{path.server.address}/32", family), gateway, index),
        ):
            host.channel.request(message)


def _route_server(server: Host, path: LinkPath) -> None:
    """Sets the server's routes to the client through a link.

    A UDP socket on all addresses answers from the source address of its route, whichever address
    was asked. For answers, the source is the server's one address. For requests to the client, it
    is the server's end of the link, so that the client answers by the same link. A request is UDP
    from a port that Linux chose to the port of a service.
    """
    index = server.indices[path.server.interface]
    for family in path.families:
        gateway, network = (
            in_family(one, family) for one in (path.border.address, path.client_network)
        )
        source = in_family(SERVER_ADDRESS, family)
        for message in (
            rtnetlink.set_route(network, gateway, index, source=source),
            rtnetlink.set_route(network, gateway, index, table=path.table),
            rtnetlink.rule(
                path.table,
                path.table,
                destination=network,
                protocol=socket.IPPROTO_UDP,
                from_ports=_ASKING_PORTS,
                to_ports=_SERVICE_PORTS,
            ),
        ):
            server.channel.request(message)


def route_middlebox(
    host: Host, path: LinkPath, direction: Direction, mtu_bytes: int | None = None
) -> None:
    """Sets a middlebox's route in a direction. It tells the senders of packets beyond the MTU.

    The MTU is the route's, because an interface's also limits what arrives (veth, is_skb_forwardable).
    """
    assert path.middlebox is not None
    if direction == "up":
        network, port, gateway = EVERYWHERE, path.middlebox.up, path.server
    else:
        network, port, gateway = path.client_network, path.middlebox.down, path.core_up
    add_route(host, port, gateway, network, mtu_bytes=mtu_bytes)


def route(hosts: dict[str, Host], path: LinkPath) -> None:
    """Sets the routes between the client and the server's one address through a link."""
    core = hosts[path.core]
    for own in path.hosts:
        host = hosts[own.node]
        route_host(host, path)
        for family in path.families:
            network = in_family(path.client_network, family)
            for rule in (
                rtnetlink.rule(path.table, path.table, source=network),
                rtnetlink.rule(path.table, path.table + 100, sent_by=path.device, family=family),
            ):
                host.channel.request(rule)
    for access in path.accesses:
        for address in (SERVER_ADDRESS, path.server.address):
            add_route(hosts[access.node], access.up, access.core, f"{address}/32")
    add_route(core, path.core_up, path.after_core, f"{SERVER_ADDRESS}/32")
    add_route(core, path.accesses[0].core, path.accesses[0].up, path.client_network)
    if path.middlebox is not None:
        middlebox = hosts[path.middlebox.node]
        add_route(core, path.core_up, path.middlebox.down, f"{path.server.address}/32")
        for direction in DIRECTIONS:
            route_middlebox(middlebox, path, direction)
    _route_server(hosts[topology.SERVER], path)
