import ipaddress
from itertools import pairwise

from linklab.lab import authority
from linklab.lab.topology import (
    AIR,
    CLIENT,
    LEASES,
    LINK_PATHS,
    SERVER,
    SERVER_ADDRESS,
    Port,
    link_path,
)

ROAMING = link_path("wifi", ("ap1", "ap2"))
PATHS = list(LINK_PATHS.values())
PORTS = [port for path in PATHS for cable in path.cables for port in cable]


def net(port: Port) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(f"{port.address}/24").network


def test_links_and_devices_are_those_of_scenarios() -> None:
    assert {name: path.device for name, path in LINK_PATHS.items()} == {
        "wifi": "wlan0",
        "lte": "rmnet0",
    }
    assert [path.client.interface for path in PATHS] == ["wlan0", "rmnet0"]


def test_every_link_leads_from_the_client_over_two_nodes_to_the_server() -> None:
    assert [path.nodes for path in PATHS] == [["ap", "isp"], ["enb", "epc"]]
    for path in PATHS:
        nodes = [CLIENT, *path.nodes, SERVER]
        assert [(one.node, two.node) for one, two in path.cables] == list(pairwise(nodes))
        for (_, far), (near, _) in pairwise(path.cables):
            assert far.interface != near.interface


def test_rate_and_delay_are_never_shaped_on_one_node() -> None:
    for path in (*PATHS, ROAMING):
        for access in path.accesses:
            assert access.down.node == access.up.node == access.node
            assert access.core.node == path.core_up.node == path.core
            assert access.node != path.core
            assert {access.node, path.core}.isdisjoint({CLIENT, SERVER, AIR})


def test_several_access_points_hang_in_the_air() -> None:
    assert ROAMING.nodes == [AIR, "ap1", "ap2", "isp"]
    assert ROAMING.carrier.node == AIR
    assert [access.air and access.air.node for access in ROAMING.accesses] == [AIR, AIR]
    # All are one gateway to the client, which only ever sees one of them.
    assert {access.down.address for access in ROAMING.accesses} == {"10.1.0.1"}
    assert (ROAMING.client, ROAMING.server) == (PATHS[0].client, PATHS[0].server)
    backhauls = [net(one) for one, two in ROAMING.cables if one.address and two.address]
    assert len(set(backhauls)) == len(backhauls) == 3


def test_one_access_point_needs_no_air() -> None:
    assert link_path("wifi", ("ap1",)) == link_path("wifi")


def test_leases_are_addresses_of_the_client_s_network() -> None:
    for path in PATHS:
        assert path.lease(0) == path.client.address
        network = ipaddress.IPv4Network(path.client_network)
        assert all(ipaddress.IPv4Address(path.lease(n)) in network for n in range(600))
        assert len({path.lease(n) for n in range(600)}) == LEASES


def test_the_kernel_takes_every_name() -> None:
    assert all(0 < len(port.interface) < 16 for port in PORTS)  # IFNAMSIZ, linux/if.h
    assert len({(port.node, port.interface) for port in PORTS}) == len(PORTS)


def test_every_cable_is_a_network_of_its_own() -> None:
    cables = [cable for path in PATHS for cable in path.cables]
    assert all(net(one) == net(two) and one != two for one, two in cables)
    assert len({net(one) for one, _ in cables}) == len(cables)
    assert len({port.address for port in PORTS}) == len(PORTS)
    assert all(ipaddress.IPv4Address(SERVER_ADDRESS) not in net(port) for port in PORTS)


def test_routing_tables_are_distinct_and_free_for_use() -> None:
    tables = [path.table for path in PATHS]
    assert len(set(tables)) == len(tables)
    assert all(1 <= table <= 252 for table in tables)  # linux/rtnetlink.h: 253-255 are taken


def test_the_server_s_certificate_is_for_its_address() -> None:
    assert SERVER_ADDRESS in authority.SERVER_NAMES
