"""Tests prepared messages with pyroute2's decoders, which are independent of ours."""

import errno
import socket
import struct
from typing import Any

import pytest
from pyroute2.netlink import ctrlmsg
from pyroute2.netlink.generic.mptcp import mptcp_msg

from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import GENERIC, Channel, NetlinkError
from linklab.lab.multipath import path_manager
from linklab.lab.multipath.multipath import mptcp_counters
from linklab.lab.multipath.path_manager import Endpoint, Family

FAMILY = Family(number=35, events=9)


def decoded(kind: Any, message: bytes, number: int, command: int) -> Any:
    read = kind(message)
    read.decode()
    assert (read["header"]["length"], read["header"]["type"]) == (len(message), number)
    assert (read["cmd"], read["version"]) == (command, 1)
    return read


def test_a_family_is_asked_for_by_its_name() -> None:
    read = decoded(ctrlmsg, path_manager.find_family(), 0x10, 3)
    assert read.get_attr("CTRL_ATTR_FAMILY_NAME") == "mptcp_pm"


FOURTH, SIXTH = "10.2.0.2", "2001:db8:1::2"
BOTH = Endpoint.SUBFLOW | Endpoint.BACKUP


@pytest.mark.parametrize(
    ("message", "command", "address", "flags", "interface"),
    [
        (path_manager.add_endpoint(FAMILY, 2, FOURTH, 7, BOTH), 1, FOURTH, 6, "07:00:00:00"),
        (path_manager.add_endpoint(FAMILY, 2, SIXTH, None, Endpoint.SIGNAL), 1, SIXTH, 1, None),
        (path_manager.delete_endpoint(FAMILY, 2, FOURTH), 2, FOURTH, 0, None),
        (path_manager.set_flags(FAMILY, 2, FOURTH, Endpoint.SUBFLOW), 7, FOURTH, 2, None),
    ],
)
def test_an_endpoint_is_an_address_with_a_number_and_a_use(
    message: bytes, command: int, address: str, flags: int, interface: str | None
) -> None:
    read = decoded(mptcp_msg, message, 35, command).get_attr("MPTCP_PM_ATTR_ADDR")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    assert [
        read.get_attr(f"MPTCP_PM_ADDR_ATTR_{name}")
        for name in ("FAMILY", "ID", "ADDR4", "ADDR6", "FLAGS", "IF_IDX")
    ] == [
        *(family, 2, address if address == FOURTH else None),
        *(address if address == SIXTH else None, flags, interface),
    ]


def test_limits() -> None:
    read = decoded(mptcp_msg, path_manager.set_limits(FAMILY, subflows=3, accepted=2), 35, 5)
    assert read.get_attr("MPTCP_PM_ATTR_SUBFLOWS") == 3
    assert read.get_attr("MPTCP_PM_ATTR_RCV_ADD_ADDRS") == 2


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


FROM_IPV4 = attribute(5, bytes([10, 2, 0, 2]))
FROM_IPV6 = attribute(6, socket.inet_pton(socket.AF_INET6, "2001:db8:2::2"))


def event(command: int, source: bytes = FROM_IPV4) -> bytes:
    """An event as the kernel tells it (linux/mptcp_pm.h)."""
    body = struct.pack("=BBH", command, 1, 0)
    body += attribute(1, struct.pack("=I", 0xABCD)) + attribute(2, struct.pack("=H", 2))
    body += attribute(3, b"\x02") + source
    body += attribute(9, struct.pack(">H", 40001)) + attribute(10, struct.pack(">H", 443))
    return struct.pack("=IHHII", 16 + len(body), 35, 0, 0, 0) + body


def test_events_say_which_subflows_there_are() -> None:
    first, further = (path_manager.opened(event(command)) for command in (2, 10))
    assert first == path_manager.Opened(0xABCD, 0, "10.2.0.2", 40001)
    assert further == path_manager.Opened(0xABCD, 2, "10.2.0.2", 40001)
    of_ipv6 = path_manager.opened(event(10, FROM_IPV6))
    assert of_ipv6 == path_manager.Opened(0xABCD, 2, "2001:db8:2::2", 40001)
    for command in (1, 3, 11, 13):  # Created, closed; a subflow closed, of another priority.
        assert path_manager.opened(event(command)) is None


def test_counters_that_are_not_0() -> None:
    netstat = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: X Y Z\nMPTcpExt: 7 0 1\n"
    assert mptcp_counters(netstat) == {"X": 7, "Z": 1}


def test_this_kernel_takes_them(namespace: int) -> None:
    with inside(namespace):
        commands = Channel(GENERIC)
    try:
        family = path_manager.family(commands.request(path_manager.find_family()))
    except NetlinkError as error:
        commands.close()
        assert error.errno == errno.ENOENT
        pytest.skip("this kernel has no Multipath TCP")
    commands.request(path_manager.set_limits(family, subflows=2, accepted=2))
    commands.request(path_manager.add_endpoint(family, 1, "10.1.0.2", 1, Endpoint.SUBFLOW))
    with pytest.raises(NetlinkError):
        commands.request(path_manager.add_endpoint(family, 1, "10.1.0.2", 1, Endpoint.SUBFLOW))
    commands.request(path_manager.set_flags(family, 1, "10.1.0.2", BOTH))
    commands.request(path_manager.delete_endpoint(family, 1, "10.1.0.2"))
    with pytest.raises(NetlinkError):
        commands.request(path_manager.set_flags(family, 1, "10.1.0.2", BOTH))
    commands.close()
