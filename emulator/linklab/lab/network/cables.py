"""Lays cables between hosts: interfaces, addresses, neighbour entries."""

from __future__ import annotations

import zlib
from typing import Final

from linklab.core.ip_family import IPV4, IPV6, in_family
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.kernel.offload import switch_off
from linklab.lab.network.hosts import Host
from linklab.lab.network.nodes import Cable
from linklab.lab.network.topology import Port

PREFIX_BITS: Final = {IPV4: 24, IPV6: 64}
"""The length of a cable's network, by family."""


def mac(port: Port) -> str:
    """Returns a locally administered MAC that is the same in every lab."""
    if port.address:
        kind, octets = 0, bytes(int(octet) for octet in port.address.split("."))
    else:
        kind, octets = 1, zlib.crc32(port.interface.encode()).to_bytes(4, "big")
    return f"02:{kind:02x}:" + ":".join(f"{octet:02x}" for octet in octets)


def add_neighbour(host: Host, own: Port, other: Port, address: str = "") -> None:
    """Tells a host the MAC of the other end, so that no ARP waits in the shaped queues. Nor does
    IPv6's neighbour discovery."""
    index = host.indices[own.interface]
    for family in own.families:
        there = in_family(address or other.address, family)
        host.channel.request(rtnetlink.set_neighbour(index, there, mac(other)))


def add_address(host: Host, port: Port, address: str, family: int) -> None:
    index = host.indices[port.interface]
    here = in_family(address, family)
    host.channel.request(rtnetlink.add_address(index, here, PREFIX_BITS[family]))


def delete_address(host: Host, port: Port, address: str, family: int) -> None:
    index = host.indices[port.interface]
    here = in_family(address, family)
    host.channel.request(rtnetlink.delete_address(index, here, PREFIX_BITS[family]))


def index_of(host: Host, interface: str) -> int:
    return rtnetlink.interface(host.channel.request(rtnetlink.find_interface(interface))).index


def skip_indices(host: Host, times: int = 1) -> None:
    """Skips interface indices of a host, so that the ends of its cables have different ones.

    Linux reports a changed carrier at once only then, and else up to a second late
    (net/core/link_watch.c, linkwatch_urgent_event). The client's cables are the first ones of their
    bridges, those of another host have its number behind the client's. So that host skips `times`.
    """
    for _ in range(times):
        host.channel.request(rtnetlink.add_pair("skipped", "skipped-peer"))
        host.channel.request(rtnetlink.delete(index_of(host, "skipped")))


def connect(hosts: dict[str, Host], one: Port, two: Port) -> None:
    """Lays a cable between two ports, gives them addresses and sets them up."""
    first, second = hosts[one.node], hosts[two.node]
    Cable(
        first.node,
        second.node,
        (one.interface, two.interface),
        (mac(one), mac(two)),
    )
    for host, port in ((first, one), (second, two)):
        index = index_of(host, port.interface)
        host.indices[port.interface] = index
        if port.address and IPV4 in port.families:
            add_address(host, port, port.address, IPV4)
        if IPV6 in port.families:
            _allow_ipv6(host, port)
        host.channel.request(rtnetlink.set_up(index, up=True))
        with inside(host.node.namespace):
            switch_off(port.interface)
    for host, port in ((first, one), (second, two)):
        if IPV6 in port.families:
            add_address(host, port, port.address, IPV6)
    if one.address and two.address:
        add_neighbour(first, one, two)
        add_neighbour(second, two, one)


def _allow_ipv6(host: Host, port: Port) -> None:
    """Switches IPv6 on for one interface, without packets of its own (`hosts.start_host`)."""
    host.channel.request(rtnetlink.set_without_discovery(host.indices[port.interface]))
    allowed = {f"net.ipv6.conf.{port.interface}.disable_ipv6": "0"}
    write_sysctls(host.node.namespace, allowed)
