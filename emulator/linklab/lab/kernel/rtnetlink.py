"""Builds messages that make and change interfaces, addresses, routes, rules and neighbours
(rtnetlink(7)).

Layouts are those of linux/rtnetlink.h, if_link.h, if_addr.h, fib_rules.h, neighbour.h and
if_bridge.h. Addresses are of IPv4 or IPv6.
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass

from linklab.core.ip_family import IPV4, family_of
from linklab.core.netlink_messages import (
    ACK,
    CREATE,
    ECHO,
    EXCLUSIVE,
    HEADER_BYTES,
    REPLACE,
    attribute,
    message,
    nested,
    number,
    of_answer,
    text,
)
from linklab.lab.kernel.socket_options import SOCKET_FAMILIES

MAIN_TABLE = 254

IS_UP = 6
"""The operational state of an interface that can carry packets (RFC 2863)."""

_NEWLINK, _DELLINK, _GETLINK = 16, 17, 18
_NEWADDR, _DELADDR, _NEWROUTE, _NEWNEIGH, _NEWRULE, _DELRULE = 20, 21, 24, 28, 32, 33

PORT_STATE, PORT_LEARNS, PORT_IS_FLOODED = 1, 8, 9
"""Settings of a bridge's port: its state (linux/if_bridge.h), whether the bridge learns addresses from
it, and whether it gets the packets for addresses that the bridge does not know."""

_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_NEW = ACK | CREATE | EXCLUSIVE

_IFF_UP, _IFF_NOARP = 0x1, 0x80
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER = 1, 3, 10
_IFLA_TXQLEN, _IFLA_GRO_MAX_SIZE = 13, 58
_IFLA_OPERSTATE, _IFLA_LINKINFO, _IFLA_STATS64, _IFLA_NET_NS_FD = 16, 18, 23, 28
_INFO_KIND, _INFO_DATA, _INFO_SLAVE_KIND, _INFO_SLAVE_DATA = 1, 2, 4, 5
_VETH_PEER, _BR_FORWARD_DELAY, _BR_STP_STATE = 1, 1, 5
_STATISTICS = struct.Struct("=16xQQ24xQ")  # struct rtnl_link_stats64
_OTHER_HOST_AT = 24 * 8

_IFA_ADDRESS, _IFA_LOCAL, _NO_DETECTION = 1, 2, 0x02
_STATIC, _UNICAST, _LOCAL, _HOST = 4, 1, 2, 254
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC = 1, 4, 5, 6, 7
_RTA_METRICS, _RTAX_MTU = 8, 2
_ON_LINK = 0x4
"""Says that a gateway is a neighbour. IPv6 would look for it by the rules, and find the route that is
replaced (net/ipv6/route.c, ip6_route_check_nh)."""

_TO_TABLE = 1
_FRA_DST, _FRA_SRC, _FRA_IIFNAME, _FRA_PRIORITY, _FRA_OIFNAME = 1, 2, 3, 6, 17
_FRA_IP_PROTO, _FRA_SPORT_RANGE, _FRA_DPORT_RANGE = 22, 23, 24
_PORTS = struct.Struct("=HH")
_NDA_DST, _NDA_LLADDR, _PERMANENT = 1, 2, 0x80
_BRIDGE_STATIC, _NTF_MASTER = 0x40, 0x04  # A permanent address would be the bridge's own.


@dataclass(frozen=True, slots=True)
class Interface:
    """Holds the kernel's report on an interface.

    `unsent_packets` found no carrier. `foreign_packets` came for the MAC of another host; 0 before
    Linux 5.19.
    """

    index: int
    operational_state: int
    received_bytes: int
    sent_bytes: int
    unsent_packets: int = 0
    foreign_packets: int = 0


def _link(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    return _LINK.pack(socket.AF_UNSPEC, 0, index, flags, change)


def _mac(kind: int, address: str) -> bytes:
    return attribute(kind, bytes.fromhex(address.replace(":", "")))


def _info(kind: str, data: bytes) -> bytes:
    return attribute(_IFLA_LINKINFO, text(_INFO_KIND, kind) + attribute(_INFO_DATA, data))


def add_cable(name: str, mac: str, other: str, other_mac: str, namespace: int) -> bytes:
    """Makes a veth pair: `name` in this namespace, `other` in that of the descriptor `namespace`."""
    peer = _link() + text(_IFLA_IFNAME, other) + _mac(_IFLA_ADDRESS, other_mac)
    peer += number(_IFLA_NET_NS_FD, namespace)
    body = _link() + text(_IFLA_IFNAME, name) + _mac(_IFLA_ADDRESS, mac)
    return message(_NEWLINK, _NEW, body + _info("veth", attribute(_VETH_PEER, peer)))


def add_pair(name: str, other: str) -> bytes:
    """Makes a veth pair with both ends in this namespace."""
    peer = attribute(_VETH_PEER, _link() + text(_IFLA_IFNAME, other))
    return message(_NEWLINK, _NEW, _link() + text(_IFLA_IFNAME, name) + _info("veth", peer))


def add_bridge(name: str) -> bytes:
    info = _info("bridge", number(_BR_FORWARD_DELAY, 0) + number(_BR_STP_STATE, 0))
    return message(_NEWLINK, _NEW, _link() + text(_IFLA_IFNAME, name) + info)


def delete(index: int) -> bytes:
    """Removes an interface. Of a veth pair, removes both."""
    return message(_DELLINK, ACK, _link(index))


def set_up(index: int, *, up: bool) -> bytes:
    return message(_NEWLINK, ACK, _link(index, _IFF_UP if up else 0, _IFF_UP))


def set_without_discovery(index: int) -> bytes:
    """Makes an interface look for no neighbours and no duplicates of its addresses. Then IPv6 also
    joins no multicast group of its own, which it would report."""
    return message(_NEWLINK, ACK, _link(index, _IFF_NOARP, _IFF_NOARP))


def set_queue_length(index: int, packets: int) -> bytes:
    """Limits how many packets of a TUN device wait for its process."""
    return message(_NEWLINK, ACK, _link(index) + number(_IFLA_TXQLEN, packets))


def set_receive_size(index: int, size_bytes: int) -> bytes:
    """Limits the size in bytes, below 65536, to which an interface merges IPv4 packets before TCP
    sees them."""
    return message(_NEWLINK, ACK, _link(index) + number(_IFLA_GRO_MAX_SIZE, size_bytes))


def set_master(index: int, bridge: int) -> bytes:
    return message(_NEWLINK, ACK, _link(index) + number(_IFLA_MASTER, bridge))


def set_port(index: int, setting: int, value: int) -> bytes:
    """Sets one of the settings PORT_… of a bridge's port."""
    data = attribute(setting, struct.pack("=B", value))
    info = text(_INFO_SLAVE_KIND, "bridge") + attribute(_INFO_SLAVE_DATA, data)
    return message(_NEWLINK, ACK, _link(index) + attribute(_IFLA_LINKINFO, info))


def set_bridged(index: int, mac: str) -> bytes:
    """Tells a bridge for ever that the host with this MAC is behind a port."""
    body = _NEIGHBOUR.pack(socket.AF_BRIDGE, index, _BRIDGE_STATIC, _NTF_MASTER, 0)
    return message(_NEWNEIGH, ACK | CREATE | REPLACE, body + _mac(_NDA_LLADDR, mac))


def get_interface(index: int) -> bytes:
    return message(_GETLINK, ECHO, _link(index))


def find_interface(name: str) -> bytes:
    return message(_GETLINK, ECHO, _link() + text(_IFLA_IFNAME, name))


def interface(answer: bytes) -> Interface:
    _, _, index, _, _ = _LINK.unpack_from(answer, HEADER_BYTES)
    found = of_answer(answer, _LINK.size)
    statistics = found[_IFLA_STATS64]
    received, sent, unsent = _STATISTICS.unpack_from(statistics)
    foreign = statistics[_OTHER_HOST_AT : _OTHER_HOST_AT + 8]
    state = found[_IFLA_OPERSTATE][0]
    return Interface(index, state, received, sent, unsent, int.from_bytes(foreign, sys.byteorder))


def _family(address: str) -> int:
    return SOCKET_FAMILIES[family_of(address)]


def _packed(address: str) -> bytes:
    return socket.inet_pton(_family(address), address)


def _address(kind: int, flags: int, index: int, address: str, prefix_bits: int) -> bytes:
    here, family = _packed(address), _family(address)
    how = _NO_DETECTION if family == socket.AF_INET6 else 0
    body = _ADDRESS.pack(family, prefix_bits, how, 0, index)
    body += attribute(_IFA_ADDRESS, here) + attribute(_IFA_LOCAL, here)
    return message(kind, flags, body)


def add_address(index: int, address: str, prefix_bits: int) -> bytes:
    """Gives an interface an address. It can be used at once, also if it is of IPv6."""
    return _address(_NEWADDR, _NEW, index, address, prefix_bits)


def delete_address(index: int, address: str, prefix_bits: int) -> bytes:
    return _address(_DELADDR, ACK, index, address, prefix_bits)


def _route(network: str, table: int, scope: int, kind: int, flags: int = 0) -> bytes:
    destination, _, bits = network.partition("/")
    family = _family(destination)
    body = _ROUTE.pack(family, int(bits), 0, 0, table, _STATIC, scope, kind, flags)
    return body + attribute(_RTA_DST, _packed(destination)) if int(bits) else body


def set_route(
    network: str,
    gateway: str,
    index: int,
    *,
    table: int = MAIN_TABLE,
    priority: int | None = None,
    source: str | None = None,
    mtu_bytes: int | None = None,
) -> bytes:
    """Sets the route to `network` (`10.1.0.0/24`, or `0.0.0.0/0` for all) through a gateway,
    replacing an existing one. A socket without an address sends from `source`, by default from the
    device's address. A router tells the senders of packets larger than `mtu_bytes`."""
    flags = _ON_LINK if _family(gateway) == socket.AF_INET6 else 0
    body = _route(network, table, 0, _UNICAST, flags)
    body += attribute(_RTA_GATEWAY, _packed(gateway)) + number(_RTA_OIF, index)
    if priority is not None:
        body += number(_RTA_PRIORITY, priority)
    if source is not None:
        body += attribute(_RTA_PREFSRC, _packed(source))
    if mtu_bytes is not None:
        body += nested(_RTA_METRICS, number(_RTAX_MTU, mtu_bytes))
    return message(_NEWROUTE, ACK | CREATE | REPLACE, body)


def set_own(network: str, index: int, table: int = MAIN_TABLE) -> bytes:
    """Makes every address of `network` one of this host's own, on its loopback device. With another
    table, for what a rule sends there."""
    body = _route(network, table, _HOST, _LOCAL)
    return message(_NEWROUTE, ACK | CREATE | REPLACE, body + number(_RTA_OIF, index))


def rule(
    table: int,
    priority: int,
    *,
    family: int = IPV4,
    source: str = "",
    destination: str = "",
    sent_by: str = "",
    arrives_by: str = "",
    protocol: int | None = None,
    from_ports: tuple[int, int] | None = None,
    to_ports: tuple[int, int] | None = None,
    deletes: bool = False,
) -> bytes:
    """Routes packets of a family by a table of 1 to 255, or no longer if it `deletes` the rule. They
    have to meet all that is given. Networks tell the family themselves. `sent_by` is the device to
    which a socket is bound."""
    numbers: int = SOCKET_FAMILIES[family]
    selector, bits = b"", []
    for kind, network in ((_FRA_DST, destination), (_FRA_SRC, source)):
        address, _, length = network.partition("/")
        bits.append(int(length or 0))
        if address:
            numbers = _family(address)
            selector += attribute(kind, _packed(address))
    for kind, device in ((_FRA_OIFNAME, sent_by), (_FRA_IIFNAME, arrives_by)):
        selector += text(kind, device) if device else b""
    if protocol is not None:
        selector += attribute(_FRA_IP_PROTO, bytes([protocol]))
    for kind, ports in ((_FRA_SPORT_RANGE, from_ports), (_FRA_DPORT_RANGE, to_ports)):
        selector += b"" if ports is None else attribute(kind, _PORTS.pack(*ports))
    body = _ROUTE.pack(numbers, *bits, 0, table, 0, 0, _TO_TABLE, 0)
    body += number(_FRA_PRIORITY, priority) + selector
    return message(_DELRULE, ACK, body) if deletes else message(_NEWRULE, _NEW, body)


def set_neighbour(index: int, address: str, mac: str) -> bytes:
    """Sets the permanent MAC of the neighbour with `address` on an interface."""
    body = _NEIGHBOUR.pack(_family(address), index, _PERMANENT, 0, 0)
    body += attribute(_NDA_DST, _packed(address))
    return message(_NEWNEIGH, ACK | CREATE | REPLACE, body + _mac(_NDA_LLADDR, mac))
