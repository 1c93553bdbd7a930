"""Joins the hosts on a link to one of its access points at a time, by a bridge."""

from __future__ import annotations

import time
from typing import Final

from linklab.lab.kernel import rtnetlink
from linklab.lab.network.cables import add_neighbour, index_of, mac
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.topology import FORMER, Access, LinkPath

_BRIDGE: Final = "air"
_BRIDGE_LISTENING, _BRIDGE_FORWARDING = 1, 3  # linux/if_bridge.h
"""States of a bridge's port. A port in the state `disabled` would not stay shut: the kernel opens
it as soon as its device changes (net/bridge/br_if.c, br_port_carrier_check)."""


def set_attached(hosts: dict[str, Host], access: Access, *, attached: bool) -> None:
    """Opens or shuts the bridge's port between the hosts and an access point, if there is one."""
    port = access.air
    if port is None:
        return
    bridge = hosts[port.node]
    state = _BRIDGE_FORWARDING if attached else _BRIDGE_LISTENING
    index = bridge.indices[port.interface]
    bridge.channel.request(rtnetlink.set_port(index, rtnetlink.PORT_STATE, state))


def _wait_until_up(host: Host, index: int) -> None:
    """Waits for an interface to come up: before, a bridge refuses to open the port
    (br_set_port_state). Raises LabError after a second."""
    for _ in range(1000):
        answer = host.channel.request(rtnetlink.get_interface(index))
        if rtnetlink.interface(answer).operational_state == rtnetlink.IS_UP:
            return
        time.sleep(0.001)
    raise LabError(f"an interface of {host.name} does not come up")


def join(hosts: dict[str, Host], path: LinkPath) -> None:
    """Makes a link's `air` node a bridge between the hosts on it and its access points.

    All access points have the same IP address and MAC, the gateway's. Ports towards them learn no
    MAC, so packets for the gateway reach the access point that the client is attached to. The bridge
    knows the MACs of all hosts, and sends them nothing else. So no host gets the packets of another.
    """
    air = hosts[path.carrier.node]
    air.channel.request(rtnetlink.add_bridge(_BRIDGE))
    bridge = index_of(air, _BRIDGE)
    air.channel.request(rtnetlink.set_up(bridge, up=True))
    for access in path.accesses:
        assert access.air is not None
        index = air.indices[access.air.interface]
        air.channel.request(rtnetlink.set_master(index, bridge))
        air.channel.request(rtnetlink.set_port(index, rtnetlink.PORT_LEARNS, 0))
        _wait_until_up(air, index)
    gateway = path.accesses[0].down
    for port, carrier in zip(path.hosts, path.carriers, strict=True):
        index = air.indices[carrier.interface]
        air.channel.request(rtnetlink.set_master(index, bridge))
        air.channel.request(rtnetlink.set_bridged(index, mac(port)))
        air.channel.request(rtnetlink.set_port(index, rtnetlink.PORT_IS_FLOODED, 0))
        add_neighbour(hosts[port.node], port, gateway)
        for access in path.accesses:
            add_neighbour(hosts[access.node], access.down, port)
    client = air.indices[path.carrier.interface]
    air.channel.request(rtnetlink.set_bridged(client, mac(FORMER)))
