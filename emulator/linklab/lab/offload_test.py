import contextlib

import pytest
from pyroute2.ethtool.ioctl import IoctlEthtool

from linklab.lab import offload
from linklab.lab.namespace import network_of, open_netlink


def switches(interface: str) -> dict[str, bool]:
    """The offloads of an interface as the kernel reports them."""
    with contextlib.closing(IoctlEthtool(interface)) as ethtool:
        found = ethtool.get_offload_flags()
    return {name: found[name] for name in offload.OFFLOADS}


def test_a_cable_s_offloads_are_off_afterwards(namespace: int) -> None:
    with open_netlink(namespace) as netlink:
        netlink.link("add", ifname="one", kind="veth", peer="two")
    with network_of(namespace):
        assert list(switches("one").values())[:2] == [True, True]
        offload.switch_off("one")
        assert not any(switches("one").values())
        assert switches("two")["generic-segmentation-offload"]


def test_what_the_driver_refuses_is_named() -> None:
    with pytest.raises(OSError, match="nowhere: tcp-segmentation-offload off: NoSuchDevice"):
        offload.switch_off("nowhere")
