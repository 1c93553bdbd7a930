import ipaddress
from itertools import pairwise

from linklab import authority, scenario
from linklab.topology import CLIENT, LINK_PATHS, SERVER, SERVER_ADDRESS, Port, nodes

PATHS = list(LINK_PATHS.values())
PORTS = [port for path in PATHS for cable in path.cables for port in cable]


def net(port: Port) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(f"{port.address}/24").network


def test_links_and_devices_are_those_of_scenarios() -> None:
    assert {name: path.device for name, path in LINK_PATHS.items()} == scenario.DEVICES
    assert list(LINK_PATHS) == list(scenario.DEVICES)
    assert [path.client.interface for path in PATHS] == ["wlan0", "rmnet0"]


def test_every_link_leads_from_the_client_over_two_nodes_to_the_server() -> None:
    for path in PATHS:
        assert [(one.node, two.node) for one, two in path.cables] == [
            (CLIENT, path.access),
            (path.access, path.core),
            (path.core, SERVER),
        ]
        for (_, far), (near, _) in pairwise(path.cables):
            assert far.interface != near.interface
    assert nodes() == ["client", "ap", "isp", "enb", "epc", "server"]
    assert {port.node for port in PORTS} == set(nodes())


def test_rate_and_delay_are_never_shaped_on_one_node() -> None:
    for path in PATHS:
        assert {path.access_down.node, path.access_up.node} == {path.access}
        assert {path.core_down.node, path.core_up.node} == {path.core}
        assert path.access != path.core
        assert {path.access, path.core}.isdisjoint({CLIENT, SERVER})


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
