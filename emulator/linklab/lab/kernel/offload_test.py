import contextlib

import pytest
from pyroute2.ethtool.ioctl import IoctlEthtool

from linklab.lab.kernel import offload, rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import Channel


def switches(interface: str) -> dict[str, bool]:
    """The offloads of an interface as the kernel reports them, by pyroute2."""
    with contextlib.closing(IoctlEthtool(interface)) as ethtool:
        found = ethtool.get_offload_flags()
    return {name: found[name] for name in offload.OFFLOADS}


def test_a_cable_s_offloads_are_off_afterwards(namespace: int) -> None:
    with inside(namespace):
        channel = Channel()
        channel.request(rtnetlink.add_pair("one", "two"))
        channel.close()
        assert list(switches("one").values())[:2] == [True, True]
        offload.switch_off("one")
        assert not any(switches("one").values())
        assert switches("two")["generic-segmentation-offload"]


def test_checksums_are_filled_in_where_that_is_asked_for(namespace: int) -> None:
    with inside(namespace):
        with contextlib.closing(Channel()) as channel:
            channel.request(rtnetlink.add_pair("one", "two"))
        offload.switch_off("one", offload.CHECKSUMS)
        with contextlib.closing(IoctlEthtool("one")) as ethtool:
            features = ethtool.get_features()
        assert not features.is_active("tx-checksum-ip-generic")


def test_what_the_driver_refuses_is_named() -> None:
    with pytest.raises(OSError, match="nowhere: tcp-segmentation-offload off: No such device"):
        offload.switch_off("nowhere")
