import os
import socket
from pathlib import Path

import pytest

from linklab.lab.kernel.namespace import inside, new_network, write_sysctls
from linklab.lab.kernel.netlink import Channel

OWN = Path("/proc/thread-self/ns/net")


def test_the_block_is_inside_and_the_rest_is_not(namespace: int) -> None:
    own = OWN.readlink()
    with inside(namespace):
        assert OWN.readlink() == Path(f"/proc/self/fd/{namespace}").readlink() != own
        assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert OWN.readlink() == own


def test_an_error_in_the_block_leads_out_of_it(namespace: int) -> None:
    own = OWN.readlink()
    with pytest.raises(KeyError), inside(namespace):
        raise KeyError
    assert OWN.readlink() == own


def test_no_descriptor_is_left_open(namespace: int) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    for _ in range(3):
        with inside(namespace):
            Channel().close()
        os.close(new_network())
    with pytest.raises(OSError, match="setns: Bad file descriptor"), inside(1 << 20):
        pass
    assert descriptors() == before


def test_sysctls_are_of_the_namespace(namespace: int) -> None:
    name = Path("/proc/sys/net/ipv4/ip_default_ttl")
    before = name.read_text()
    write_sysctls(namespace, {"net.ipv4.ip_default_ttl": "77"})
    assert name.read_text() == before
    with inside(namespace):
        assert name.read_text() == "77\n"


def test_a_refused_sysctl_is_named(namespace: int) -> None:
    with pytest.raises(OSError, match="sysctl net.ipv4.tcp_congestion_control=warp: No such file"):
        write_sysctls(namespace, {"net.ipv4.tcp_congestion_control": "warp"})
    with pytest.raises(OSError, match="sysctl net.ipv4.no_such_thing=1: "):
        write_sysctls(namespace, {"net.ipv4.no_such_thing": "1"})


def test_a_control_that_only_the_first_namespace_may_have_says_so(namespace: int) -> None:
    known, allowed = (
        set(Path(f"/proc/sys/net/ipv4/tcp_{which}_congestion_control").read_text().split())
        for which in ("available", "allowed")
    )
    for control in known - allowed:
        with pytest.raises(PermissionError, match=f"{control}: Operation not permitted; allowed: "):
            write_sysctls(namespace, {"net.ipv4.tcp_congestion_control": control})
    for control in known & allowed:
        write_sysctls(namespace, {"net.ipv4.tcp_congestion_control": control})
