import array
import fcntl
import socket
import struct

import pytest

from linklab.lab import offload
from linklab.lab.namespace import network_of, open_netlink

GET = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}  # ETHTOOL_GTSO, _GGSO, _GGRO (linux/ethtool.h)


def switches(interface: str) -> dict[str, int]:
    """The offloads of an interface as the kernel reports them."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in GET.items():
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, offload.SIOCETHTOOL, request)
            found[name] = struct.unpack("II", value)[1]
    return found


def test_a_cable_s_offloads_are_off_afterwards(namespace: int) -> None:
    with open_netlink(namespace) as netlink:
        netlink.link("add", ifname="one", kind="veth", peer="two")
    with network_of(namespace):
        assert switches("one")["tso"] == switches("one")["gso"] == 1
        offload.switch_off("one")
        assert switches("one") == {"tso": 0, "gso": 0, "gro": 0}
        assert switches("two")["gso"] == 1


def test_what_the_driver_refuses_is_named() -> None:
    with pytest.raises(OSError, match="nowhere: tso off: No such device"):
        offload.switch_off("nowhere")
