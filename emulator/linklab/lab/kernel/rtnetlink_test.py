"""Tests prepared messages with pyroute2's decoders, which are independent of ours."""

import errno
import functools
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
        (rtnetlink.set_port(3, rtnetlink.PORT_STATE, 2), "IFLA_BRPORT_STATE", 2),
        (rtnetlink.set_port(3, rtnetlink.PORT_LEARNS, 0), "IFLA_BRPORT_LEARNING", 0),
        (rtnetlink.set_port(3, rtnetlink.PORT_IS_FLOODED, 0), "IFLA_BRPORT_UNICAST_FLOOD", 0),
    ],
)
def test_a_port_s_settings_are_those_of_a_bridge(message: bytes, name: str, value: int) -> None:
    read = decoded(ifinfmsg, message, 16, CHANGE)
    info = read.get_attr("IFLA_LINKINFO")
    assert (read["index"], info.get_attr("IFLA_INFO_SLAVE_KIND")) == (3, "bridge")
    assert info.get_attr("IFLA_INFO_SLAVE_DATA").get_attr(name) == value


IPV4, IPV6 = int(socket.AF_INET), int(socket.AF_INET6)
NETWORK, GATEWAY = "10.1.0.0/24", "10.1.2.1"
SIX, SIX_GATEWAY = "2001:db8:1::/64", "2001:db8:1:2::1"


def told(read: Any, prefix: str) -> dict[str, Any]:
    """Returns the fields of a message that are not 0, and its attributes."""
    named = ("family", "dst_len", "src_len", "table", "type", "scope", "flags")
    fields = {name: read[name] for name in named if read.get(name)}
    return fields | {name.removeprefix(prefix): value for name, value in read["attrs"]}


def test_routes() -> None:
    through = {"type": 1, "RTA_GATEWAY": GATEWAY, "RTA_OIF": 5}
    there = {**through, "family": IPV4, "dst_len": 24, "table": 254, "RTA_DST": "10.1.0.0"}
    for message, wanted in (
        (rtnetlink.set_route(NETWORK, GATEWAY, 5), there),
        (
            rtnetlink.set_route("0.0.0.0/0", GATEWAY, 5, table=101, priority=77),
            {**through, "family": IPV4, "table": 101, "RTA_PRIORITY": 77},
        ),
        (
            rtnetlink.set_route(NETWORK, GATEWAY, 5, source="10.0.0.1"),
            {**there, "RTA_PREFSRC": "10.0.0.1"},
        ),
        (
            rtnetlink.set_route(SIX, SIX_GATEWAY, 5),
            {**there, "family": IPV6, "dst_len": 64, "flags": 0x4, "RTA_DST": "2001:db8:1::"}
            | {"RTA_GATEWAY": SIX_GATEWAY},
        ),
        (
            rtnetlink.set_own(NETWORK, 1, 102),
            {"family": IPV4, "dst_len": 24, "table": 102, "type": 2, "scope": 254}
            | {"RTA_DST": "10.1.0.0", "RTA_OIF": 1},
        ),
    ):
        read = decoded(rtmsg, message, 24, SET)
        assert {**told(read, ""), "proto": read["proto"]} == {**wanted, "proto": 4}
    limited = decoded(rtmsg, rtnetlink.set_route(NETWORK, GATEWAY, 5, mtu_bytes=1200), 24, SET)
    assert limited.get_attr("RTA_METRICS").get_attr("RTAX_MTU") == 1200


def test_rules_choose_a_table() -> None:
    rule = functools.partial(rtnetlink.rule, from_ports=(1000, 2000), to_ports=(1, 99))
    for message, wanted in (
        (rtnetlink.rule(101, 102, source=NETWORK), {"src_len": 24, "SRC": "10.1.0.0"}),
        (rtnetlink.rule(101, 102, sent_by="w0", family=6), {"family": IPV6, "OIFNAME": "w0"}),
        (
            rule(101, 102, destination=SIX, protocol=17),
            {"family": IPV6, "dst_len": 64, "DST": "2001:db8:1::", "IP_PROTO": 17}
            | {"SPORT_RANGE": "1000:2000", "DPORT_RANGE": "1:99"},
        ),
        (rtnetlink.rule(101, 102, arrives_by="nat"), {"IIFNAME": "nat"}),
    ):
        read = decoded(fibmsg, message, 32, NEW)
        assert read["action"] == 1
        assert told(read, "FRA_") == {"family": IPV4, "table": 101, "PRIORITY": 102, **wanted}


def test_a_rule_is_deleted_by_what_it_was_made_of() -> None:
    made, gone = (rtnetlink.rule(102, 50, source=NETWORK, deletes=one) for one in (False, True))
    decoded(fibmsg, gone, 33, CHANGE)
    assert gone[16:] == made[16:]


@pytest.mark.parametrize(
    ("address", "bits", "family", "flags"),
    [("10.1.0.2", 24, IPV4, 0), ("2001:db8:1::2", 64, IPV6, 0x02)],
)
def test_addresses_and_neighbours(address: str, bits: int, family: int, flags: int) -> None:
    for message, number, kind in (
        (rtnetlink.add_address(3, address, bits), 20, NEW),
        (rtnetlink.delete_address(3, address, bits), 21, CHANGE),
    ):
        read = decoded(ifaddrmsg, message, number, kind)
        fields = (read["index"], read["prefixlen"], read["family"], read["flags"])
        assert fields == (3, bits, family, flags)
        assert (read.get_attr("IFA_ADDRESS"), read.get_attr("IFA_LOCAL")) == (address,) * 2
    read = decoded(ndmsg, rtnetlink.set_neighbour(3, address, MACS[0]), 28, SET)
    assert (read["ifindex"], read["state"], read["family"]) == (3, 0x80, family)
    assert (read.get_attr("NDA_DST"), read.get_attr("NDA_LLADDR")) == (address, MACS[0])


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
        rtnetlink.rule(101, 101, source="10.1.0.0/24"),
        rtnetlink.rule(101, 201, sent_by="here"),
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
