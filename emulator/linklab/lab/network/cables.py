"""Lays cables between hosts: interfaces, addresses, neighbour entries."""

from __future__ import annotations

import zlib

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.offload import switch_off
from linklab.lab.network.hosts import Host
from linklab.lab.network.nodes import Cable
from linklab.lab.network.topology import Port


def _mac(port: Port) -> str:
    """Returns a locally administered MAC that is the same in every lab."""
    if port.address:
        kind, octets = 0, bytes(int(octet) for octet in port.address.split("."))
    else:
        kind, octets = 1, zlib.crc32(port.interface.encode()).to_bytes(4, "big")
    return f"02:{kind:02x}:" + ":".join(f"{octet:02x}" for octet in octets)


def add_neighbour(host: Host, own: Port, other: Port, address: str = "") -> None:
    """Tells a host the MAC of the other end, so that no ARP waits in the shaped queues."""
    index = host.indices[own.interface]
    host.channel.request(rtnetlink.set_neighbour(index, address or other.address, _mac(other)))


def index_of(host: Host, interface: str) -> int:
    """Asks the kernel for the index of an interface."""
    return rtnetlink.interface(host.channel.request(rtnetlink.find_interface(interface))).index


def skip_indices(host: Host) -> None:
    """Skips interface indices of a host, so that the ends of its cables have different ones.

    Linux reports a changed carrier at once only then, and else up to a second late
    (net/core/link_watch.c, linkwatch_urgent_event).
    """
    host.channel.request(rtnetlink.add_pair("skipped", "skipped-peer"))
    host.channel.request(rtnetlink.delete(index_of(host, "skipped")))


def connect(hosts: dict[str, Host], one: Port, two: Port) -> None:
    """Lays a cable between two ports, gives them addresses and sets them up."""
    first, second = hosts[one.node], hosts[two.node]
    Cable(
        first.node,
        second.node,
        (one.interface, two.interface),
        (_mac(one), _mac(two)),
    )
    for host, port in ((first, one), (second, two)):
        index = index_of(host, port.interface)
        host.indices[port.interface] = index
        if port.address:
            host.channel.request(rtnetlink.add_address(index, port.address, 24))
        host.channel.request(rtnetlink.set_up(index, up=True))
        with inside(host.node.namespace):
            switch_off(port.interface)
    if one.address and two.address:
        add_neighbour(first, one, two)
        add_neighbour(second, two, one)
