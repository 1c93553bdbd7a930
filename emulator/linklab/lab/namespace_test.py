import socket
from pathlib import Path

import pytest

from linklab.lab.namespace import network_of, open_netlink, write_sysctls

OWN = Path("/proc/thread-self/ns/net")


def test_the_block_is_inside_and_the_rest_is_not(namespace: int) -> None:
    own = OWN.readlink()
    with network_of(namespace):
        assert OWN.readlink() == Path(f"/proc/{namespace}/ns/net").readlink() != own
        assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert OWN.readlink() == own


def test_an_error_in_the_block_leads_out_of_it(namespace: int) -> None:
    own = OWN.readlink()
    with pytest.raises(KeyError), network_of(namespace):
        raise KeyError
    assert OWN.readlink() == own


def test_no_descriptor_is_left_open(namespace: int) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    for _ in range(3):
        with network_of(namespace):
            pass
        open_netlink(namespace).close()
    with pytest.raises(FileNotFoundError), network_of(1 << 30):
        pass
    assert descriptors() == before


def test_netlink_stays_where_it_was_opened(namespace: int) -> None:
    with open_netlink(namespace) as netlink:
        netlink.link("add", ifname="one", kind="veth", peer="two")
        inside = {link.get_attr("IFLA_IFNAME") for link in netlink.get_links()}
        assert inside == {"lo", "one", "two"}
        assert "one" not in {name for _, name in socket.if_nameindex()}


def test_sysctls_are_of_the_namespace(namespace: int) -> None:
    name = Path("/proc/sys/net/ipv4/ip_default_ttl")
    before = name.read_text()
    write_sysctls(namespace, {"net.ipv4.ip_default_ttl": "77"})
    assert name.read_text() == before
    with network_of(namespace):
        assert name.read_text() == "77\n"


def test_a_refused_sysctl_is_named(namespace: int) -> None:
    with pytest.raises(OSError, match="sysctl net.ipv4.tcp_congestion_control=warp: No such file"):
        write_sysctls(namespace, {"net.ipv4.tcp_congestion_control": "warp"})
    with pytest.raises(OSError, match="sysctl net.ipv4.no_such_thing=1: "):
        write_sysctls(namespace, {"net.ipv4.no_such_thing": "1"})
