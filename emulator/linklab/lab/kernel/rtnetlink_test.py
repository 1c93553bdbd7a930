"""Tests prepared messages with pyroute2's decoders, which are independent of ours."""

import errno
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, new_network
from linklab.lab.kernel.netlink import Channel, NetlinkError

NEW, CHANGE, SET = 0x1 | 0x4 | 0x200 | 0x400, 0x1 | 0x4, 0x1 | 0x4 | 0x100 | 0x400
MACS = ("02:00:0a:01:00:02", "02:01:aa:bb:cc:dd")


def decoded(kind: Any, message: bytes, number: int, flags: int) -> Any:
    read = kind(message)
    read.decode()
    header = read["header"]
    assert (header["length"], header["type"], header["flags"]) == (len(message), number, flags)
    return read


def test_a_cable_has_two_names_and_macs_and_its_other_end_elsewhere() -> None:
    read = decoded(ifinfmsg, rtnetlink.add_cable("wlan0", MACS[0], "ap-wlan0", MACS[1], 7), 16, NEW)
    assert (read.get_attr("IFLA_IFNAME"), read.get_attr("IFLA_ADDRESS")) == ("wlan0", MACS[0])
    info = read.get_attr("IFLA_LINKINFO")
    assert info.get_attr("IFLA_INFO_KIND") == "veth"
    peer = info.get_attr("IFLA_INFO_DATA").get_attr("VETH_INFO_PEER")
    assert (peer.get_attr("IFLA_IFNAME"), peer.get_attr("IFLA_ADDRESS")) == ("ap-wlan0", MACS[1])
    assert peer.get_attr("IFLA_NET_NS_FD") == 7


def test_a_bridge_has_no_spanning_tree() -> None:
    info = decoded(ifinfmsg, rtnetlink.add_bridge("air"), 16, NEW).get_attr("IFLA_LINKINFO")
    assert info.get_attr("IFLA_INFO_KIND") == "bridge"
    assert info.get_attr("IFLA_INFO_DATA").get_attr("IFLA_BR_STP_STATE") == 0


@pytest.mark.parametrize("up", [True, False])
def test_an_interface_goes_up_and_down(up: bool) -> None:
    read = decoded(ifinfmsg, rtnetlink.set_up(3, up=up), 16, CHANGE)
    assert (read["index"], read["flags"], read["change"]) == (3, int(up), 1)


@pytest.mark.parametrize(
    ("message", "name", "value"),
    [
        (rtnetlink.set_port_state(3, 2), "IFLA_BRPORT_STATE", 2),
        (rtnetlink.set_port_learning(3, learns=False), "IFLA_BRPORT_LEARNING", 0),
        (rtnetlink.set_port_flooding(3, floods=False), "IFLA_BRPORT_UNICAST_FLOOD", 0),
    ],
)
def test_a_port_s_settings_are_those_of_a_bridge(message: bytes, name: str, value: int) -> None:
    read = decoded(ifinfmsg, message, 16, CHANGE)
    info = read.get_attr("IFLA_LINKINFO")
    assert (read["index"], info.get_attr("IFLA_INFO_SLAVE_KIND")) == (3, "bridge")
    assert info.get_attr("IFLA_INFO_SLAVE_DATA").get_attr(name) == value


@pytest.mark.parametrize(
    ("message", "number", "flags"),
    [
        (rtnetlink.add_address(3, "10.1.0.2", 24), 20, NEW),
        (rtnetlink.delete_address(3, "10.1.0.2", 24), 21, CHANGE),
    ],
)
def test_an_address_comes_and_goes(message: bytes, number: int, flags: int) -> None:
    read = decoded(ifaddrmsg, message, number, flags)
    assert (read["index"], read["prefixlen"], read["family"]) == (3, 24, socket.AF_INET)
    assert (read.get_attr("IFA_ADDRESS"), read.get_attr("IFA_LOCAL")) == ("10.1.0.2",) * 2


def test_a_route_leads_through_a_gateway() -> None:
    read = decoded(rtmsg, rtnetlink.set_route("10.1.0.0/24", "10.1.2.1", 5), 24, SET)
    assert (read["dst_len"], read["table"], read["type"]) == (24, 254, 1)
    assert (read.get_attr("RTA_DST"), read.get_attr("RTA_GATEWAY")) == ("10.1.0.0", "10.1.2.1")
    assert (read.get_attr("RTA_OIF"), read.get_attr("RTA_PRIORITY")) == (5, None)


def test_a_route_to_everywhere_has_its_table_and_priority() -> None:
    message = rtnetlink.set_route("0.0.0.0/0", "10.1.0.1", 5, table=101, priority=77)
    read = decoded(rtmsg, message, 24, SET)
    assert (read["dst_len"], read["table"], read.get_attr("RTA_DST")) == (0, 101, None)
    assert read.get_attr("RTA_PRIORITY") == 77
    assert read.get_attr("RTA_PREFSRC") is None


def test_a_route_says_from_where_is_sent() -> None:
    read = decoded(
        rtmsg, rtnetlink.set_route("10.1.0.0/24", "10.1.2.1", 5, mtu_bytes=1200), 24, SET
    )
    assert read.get_attr("RTA_METRICS").get_attr("RTAX_MTU") == 1200
    message = rtnetlink.set_route("10.1.0.0/24", "10.1.2.1", 5, source="10.0.0.1")
    assert decoded(rtmsg, message, 24, SET).get_attr("RTA_PREFSRC") == "10.0.0.1"


def test_rules_choose_a_table() -> None:
    read = decoded(fibmsg, rtnetlink.add_rule_by_source("10.1.0.0/24", 101, 101), 32, NEW)
    assert (read["src_len"], read["table"], read["action"]) == (24, 101, 1)
    assert (read.get_attr("FRA_SRC"), read.get_attr("FRA_PRIORITY")) == ("10.1.0.0", 101)
    gone = decoded(fibmsg, rtnetlink.delete_rule_by_source("10.1.0.2/32", 102, 50), 33, CHANGE)
    assert (gone["src_len"], gone["table"]) == (32, 102)
    assert (gone.get_attr("FRA_SRC"), gone.get_attr("FRA_PRIORITY")) == ("10.1.0.2", 50)
    read = decoded(fibmsg, rtnetlink.add_rule_by_device("wlan0", 101, 201), 32, NEW)
    assert (read["src_len"], read["table"], read["action"]) == (0, 101, 1)
    assert (read.get_attr("FRA_OIFNAME"), read.get_attr("FRA_PRIORITY")) == ("wlan0", 201)
    message = rtnetlink.add_rule_by_udp_ports("10.1.0.0/24", (1000, 2000), (1, 99), 101, 102)
    read = decoded(fibmsg, message, 32, NEW)
    assert (read["dst_len"], read["src_len"], read["table"], read["action"]) == (24, 0, 101, 1)
    assert (read.get_attr("FRA_DST"), read.get_attr("FRA_PRIORITY")) == ("10.1.0.0", 102)
    assert read.get_attr("FRA_IP_PROTO") == socket.IPPROTO_UDP
    ports = (read.get_attr("FRA_SPORT_RANGE"), read.get_attr("FRA_DPORT_RANGE"))
    assert ports == ("1000:2000", "1:99")


def test_a_neighbour_stays() -> None:
    read = decoded(ndmsg, rtnetlink.set_neighbour(3, "10.1.0.1", MACS[0]), 28, SET)
    assert (read["ifindex"], read["state"], read["family"]) == (3, 0x80, socket.AF_INET)
    assert (read.get_attr("NDA_DST"), read.get_attr("NDA_LLADDR")) == ("10.1.0.1", MACS[0])


def test_addresses_of_ipv6_have_its_family() -> None:
    read = decoded(ifaddrmsg, rtnetlink.add_address(3, "2001:db8:1::2", 64), 20, NEW)
    assert (read["family"], read["prefixlen"], read["flags"]) == (socket.AF_INET6, 64, 0x02)
    assert read.get_attr("IFA_LOCAL") == "2001:db8:1::2"
    message = rtnetlink.set_route("2001:db8:1::/64", "2001:db8:1:2::1", 5)
    read = decoded(rtmsg, message, 24, SET)
    assert (read["family"], read["dst_len"], read["flags"]) == (socket.AF_INET6, 64, 0x4)
    assert read.get_attr("RTA_GATEWAY") == "2001:db8:1:2::1"
    read = decoded(fibmsg, rtnetlink.add_rule_by_device("wlan0", 101, 201, 6), 32, NEW)
    assert read["family"] == socket.AF_INET6
    read = decoded(ndmsg, rtnetlink.set_neighbour(3, "2001:db8:1::1", MACS[0]), 28, SET)
    assert (read["family"], read.get_attr("NDA_DST")) == (socket.AF_INET6, "2001:db8:1::1")


def test_a_bridge_knows_a_host_for_ever() -> None:
    """As `bridge fdb add … master static` asks for it (bridge(8))."""
    read = decoded(ndmsg, rtnetlink.set_bridged(3, MACS[0]), 28, SET)
    assert (read["ifindex"], read["state"], read["family"]) == (3, 0x40, 7)
    assert (read["flags"], read.get_attr("NDA_LLADDR")) == (0x04, MACS[0])


@pytest.fixture
def pair(namespace: int) -> Iterator[tuple[Channel, Channel]]:
    """Netlink in two namespaces that a cable joins."""
    other = new_network()
    channels = []
    for one in (namespace, other):
        with inside(one):
            channels.append(Channel())
    channels[0].request(rtnetlink.add_cable("here", MACS[0], "there", MACS[1], other))
    yield channels[0], channels[1]
    for channel in channels:
        channel.close()
    os.close(other)


def index(channel: Channel, name: str) -> int:
    return rtnetlink.interface(channel.request(rtnetlink.find_interface(name))).index


def test_the_kernel_does_all_of_it(pair: tuple[Channel, Channel], namespace: int) -> None:
    here, there = pair
    own, other = index(here, "here"), index(there, "there")
    with pytest.raises(NetlinkError) as refused:
        index(here, "there")
    assert refused.value.errno == errno.ENODEV
    for channel, number in ((here, own), (there, other)):
        channel.request(rtnetlink.set_up(number, up=True))
    found = rtnetlink.interface(here.request(rtnetlink.get_interface(own)))
    assert (found.index, found.operational_state) == (own, rtnetlink.IS_UP)

    with inside(namespace):
        assert (own, "here") in socket.if_nameindex()
    here.request(rtnetlink.add_address(own, "10.1.0.2", 24))
    with pytest.raises(NetlinkError, match="File exists"):
        here.request(rtnetlink.add_address(own, "10.1.0.2", 24))
    for message in (
        rtnetlink.set_neighbour(own, "10.1.0.1", MACS[1]),
        rtnetlink.set_route("0.0.0.0/0", "10.1.0.1", own, table=101),
        rtnetlink.set_route("0.0.0.0/0", "10.1.0.1", own, priority=101),
        rtnetlink.set_route("10.2.0.0/24", "10.1.0.1", own, source="10.1.0.2"),
        rtnetlink.add_rule_by_source("10.1.0.0/24", 101, 101),
        rtnetlink.add_rule_by_device("here", 101, 201),
        rtnetlink.add_rule_by_udp_ports("10.2.0.0/24", (32768, 60999), (1, 32767), 101, 101),
        rtnetlink.delete_address(own, "10.1.0.2", 24),
    ):
        here.request(message)
    here.request(rtnetlink.delete(own))
    with pytest.raises(NetlinkError):
        index(there, "there")


def test_what_came_is_counted(pair: tuple[Channel, Channel], namespace: int) -> None:
    here, there = pair
    own, other = index(here, "here"), index(there, "there")
    here.request(rtnetlink.add_address(own, "10.1.0.2", 24))
    here.request(rtnetlink.set_neighbour(own, "10.1.0.1", MACS[1]))
    for channel, number in ((here, own), (there, other)):
        channel.request(rtnetlink.set_up(number, up=True))

    def received() -> int:
        return rtnetlink.interface(there.request(rtnetlink.get_interface(other))).received_bytes

    before, patience = received(), time.monotonic() + 10
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        # More than one: a cable passes nothing before both ends are up.
        while received() - before < 1000 + 8 + 20 + 14:
            sender.sendto(bytes(1000), ("10.1.0.1", 9))
            assert time.monotonic() < patience
