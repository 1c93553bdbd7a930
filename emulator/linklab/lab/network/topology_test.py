import ipaddress
from random import Random
from typing import Any

import pytest

from linklab import scenario
from linklab.core.link_kinds import MAX_LINKS
from linklab.lab.network.topology import (
    AIR,
    CLIENT,
    LEASES,
    SERVER,
    SERVER_ADDRESS,
    LinkPath,
    Port,
    link_paths,
)

LINK = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 0 s"


def paths_of(*links: str, **options: Any) -> list[LinkPath]:
    text = f"name: a\npayload: {{size: 1 B}}\nlinks: {{{', '.join(links)}}}\n"
    return list(link_paths(scenario.parse(text).links, **options).values())


def wifi(name: str, *points: str) -> str:
    named = ", ".join(f"{{name: {point}}}" for point in points)
    radio = f", radio: {{standard: ac, access_points: [{named}]}}" if points else ""
    return f"{name}: {{{LINK}, kind: wifi{radio}}}"


def lte(name: str) -> str:
    return f"{name}: {{{LINK}, kind: lte}}"


TWO = paths_of(wifi("wifi"), lte("lte"))
ROAMING = paths_of(wifi("wifi", "ap1", "ap2"), lte("lte"))[0]
MANY = paths_of(
    wifi("wifi", "ap1", "ap2"),
    wifi("b", "longname", "longnam2"),
    wifi("c"),
    *(lte(name) for name in ("lte", "d", "e", "f", "g")),
)


def net(port: Port) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(f"{port.address}/24").network


def ports(paths: list[LinkPath]) -> list[Port]:
    return [port for path in paths for cable in path.cables for port in cable]


IMPAIRED = paths_of(wifi("wifi", "ap1", "ap2"), lte("lte"), impaired={"wifi", "lte"})
SHARED = paths_of(
    *(wifi("wifi", "ap1", "ap2"), wifi("b"), lte("lte"), lte("d")),
    others={"wifi": ["other", "client-2"], "lte": ["other"], "d": ["client-2"]},
)

every = pytest.mark.parametrize(
    "paths", [TWO, MANY, IMPAIRED, SHARED], ids=["two", "many", "impaired", "shared"]
)


def test_wifi_and_lte_stand_where_they_always_stood() -> None:
    assert [path.client.interface for path in TWO] == ["wlan0", "rmnet0"]
    assert [path.nodes for path in TWO] == [["ap", "isp"], ["enb", "epc"]]
    assert [path.client.address for path in TWO] == ["10.1.0.2", "10.2.0.2"]
    assert [path.table for path in TWO] == [101, 102]


@pytest.mark.parametrize("seed", range(10))
def test_addresses_follow_the_kinds_and_then_the_file(seed: int) -> None:
    """As `linklab scenarios --keys` says it, with the order of the kinds that it lists."""
    random = Random(seed)
    kinds = random.choices(
        ["wifi", "lte", "5g", "satellite", "fixed", "other"], k=random.randint(2, 8)
    )
    links = [f"n{number}: {{{LINK}, kind: {kind}}}" for number, kind in enumerate(kinds)]
    order = [
        f"n{number}"
        for kind in ("wifi", "lte", "5g", "satellite", "fixed", "other")
        for number, one in enumerate(kinds)
        if one == kind
    ]
    addresses = {path.name: path.client.address for path in paths_of(*links)}
    assert addresses == {name: f"10.{place}.0.2" for place, name in enumerate(order, 1)}


def test_further_links_have_nodes_devices_and_networks_of_their_own() -> None:
    assert len(MANY) == MAX_LINKS
    assert [path.device for path in MANY[:5]] == ["wlan0", "wlan1", "wlan2", "rmnet0", "rmnet1"]
    assert MANY[1].nodes == ["air-1", "longname", "longnam2", "isp-1"]
    assert MANY[2].nodes == ["ap-2", "isp-2"]
    nodes = [node for path in MANY for node in path.nodes]
    assert len(set(nodes)) == len(nodes)


def test_rate_and_delay_are_never_shaped_on_one_node() -> None:
    for path in (*TWO, *MANY):
        for access in path.accesses:
            assert access.down.node == access.up.node == access.node
            assert access.core.node == path.core_up.node == path.core
            assert access.node != path.core
            assert {access.node, path.core}.isdisjoint({CLIENT, SERVER, AIR})


def test_a_middlebox_stands_between_core_and_server() -> None:
    wifi, lte = IMPAIRED
    assert wifi.nodes == [AIR, "ap1", "ap2", "isp", "isp-mid"]
    assert lte.nodes == ["enb", "epc", "epc-mid"]
    assert [one.node for one in (lte.core_up, lte.after_core, lte.border, lte.server)] == [
        "epc",
        "epc-mid",
        "epc-mid",
        SERVER,
    ]
    assert (lte.client, lte.server) == (TWO[1].client, TWO[1].server)
    assert lte.border.address == TWO[1].border.address


def test_several_access_points_hang_in_the_air() -> None:
    assert ROAMING.nodes == [AIR, "ap1", "ap2", "isp"]
    assert ROAMING.carrier.node == AIR
    assert [access.air and access.air.node for access in ROAMING.accesses] == [AIR, AIR]
    # All are one gateway to the client, which only ever sees one of them.
    assert {access.down.address for access in ROAMING.accesses} == {"10.1.0.1"}
    assert (ROAMING.client, ROAMING.server) == (TWO[0].client, TWO[0].server)
    backhauls = [net(one) for one, two in ROAMING.cables if one.address and two.address]
    assert len(set(backhauls)) == len(backhauls) == 3


def test_other_hosts_stand_behind_the_client_s_bridge() -> None:
    wifi, alone, lte, second = SHARED
    assert wifi.nodes == [AIR, "ap1", "ap2", "isp"]
    assert [path.nodes for path in (lte, second)] == [
        ["air-enb", "enb", "epc"],
        ["air-enb-1", "enb-1", "epc-1"],
    ]
    assert alone.nodes == ["ap-1", "isp-1"]
    assert [port.node for port in wifi.hosts] == [CLIENT, "other", "client-2"]
    assert {port.node for port in wifi.carriers} == {AIR}
    assert len(set(wifi.carriers)) == 3
    assert {port.interface for port in wifi.hosts} == {"wlan0"}
    assert lte.carriers[0].node == lte.accesses[0].air.node == "air-enb"  # type: ignore[union-attr]


def test_no_host_gets_an_address_that_the_client_may_lease() -> None:
    for path in SHARED:
        others = [station.host.address for station in path.stations]
        assert len(set(others)) == len(others)
        leases = {path.lease(number) for number in range(600)}
        assert leases.isdisjoint(others)
        assert all(
            ipaddress.IPv4Address(one) in ipaddress.IPv4Network(path.client_network)
            for one in others
        )


def test_one_access_point_needs_no_air() -> None:
    assert paths_of(wifi("wifi", "ap1")) == paths_of(wifi("wifi"))


def test_leases_are_addresses_of_the_client_s_network() -> None:
    for path in MANY:
        assert path.lease(0) == path.client.address
        network = ipaddress.IPv4Network(path.client_network)
        assert all(ipaddress.IPv4Address(path.lease(n)) in network for n in range(600))
        assert len({path.lease(n) for n in range(600)}) == LEASES


@every
def test_the_kernel_takes_every_name(paths: list[LinkPath]) -> None:
    assert all(0 < len(port.interface) < 16 for port in ports(paths))  # IFNAMSIZ, linux/if.h
    named = [(port.node, port.interface) for port in ports(paths)]
    assert len(set(named)) == len(named)


@every
def test_every_cable_is_a_network_of_its_own(paths: list[LinkPath]) -> None:
    cables = [
        (one, two) for path in paths for one, two in path.cables if one.address and two.address
    ]
    assert all(net(one) == net(two) and one != two for one, two in cables)
    assert len({net(one) for one, _ in cables}) == len(cables)
    addresses = [port.address for cable in cables for port in cable]
    assert len(set(addresses)) == len(addresses)
    assert all(ipaddress.IPv4Address(SERVER_ADDRESS) not in net(one) for one, _ in cables)


def test_routing_tables_are_distinct_and_free_for_use() -> None:
    tables = [path.table for path in MANY]
    assert len(set(tables)) == len(tables)
    assert all(1 <= table <= 252 for table in tables)  # linux/rtnetlink.h: 253-255 are taken


def test_what_names_no_link_takes_the_first_or_the_one_that_is_wanted() -> None:
    def order(first: str | None) -> list[str]:
        paths = paths_of(wifi("wifi"), lte("lte"), first=first)
        assert [path.table for path in paths] == [101, 102]
        return [path.name for path in sorted(paths, key=lambda path: path.priority)]

    assert order(None) == order("wifi") == ["wifi", "lte"]
    assert order("lte") == ["lte", "wifi"]
