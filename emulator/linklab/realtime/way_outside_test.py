import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from linklab.core.free_ports import free_ports
from linklab.core.ip_family import Families
from linklab.lab.network.services import Origin, Outside
from linklab.places.guest import gateway
from linklab.realtime import way_outside
from linklab.scenario import Scenario
from linklab.scenario.network import NetworkSettings


def wanted(
    origins: list[str],
    everything: bool,
    proxy: tuple[str, int] | None,
    scenario: Scenario,
    place: str,
) -> Outside:
    """Returns what is opened, without its sockets."""
    with contextlib.closing(
        way_outside.wanted(origins, everything, proxy, scenario, place)
    ) as reach:
        return reach.outside


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port of the loopback device that answers."""
    monkeypatch.setattr(gateway, "obstacle", lambda: None)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


def test_this_machine_s_server_has_an_address_of_its_own_in_the_lab(
    small: Scenario, port: int
) -> None:
    url = f"http://localhost:{port}/a?b=c"
    on_host = wanted([url], False, None, small, "host")
    made = Origin(f"http://10.0.1.1:{port}/a?b=c", "", "10.0.1.1", port, ("127.0.0.1", port))
    assert on_host.origins == (made,)
    assert on_host.reaches_loopback
    (in_guest,) = wanted([url], False, None, small, "guest").origins
    assert in_guest.to == (gateway.GATEWAY, port)
    assert in_guest.url == made.url


def test_a_server_keeps_its_name(
    small: Scenario, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    (origin,) = wanted([f"https://shop.test:{port}/"], False, None, small, "host").origins
    assert (origin.url, origin.name) == (f"https://shop.test:{port}/", "shop.test")
    assert origin.address == "10.0.1.1", "a name of this machine itself"


def test_a_proxy_over_all_links_and_one_over_each(small: Scenario, port: int) -> None:
    free = free_ports(3)
    found = wanted([], False, ("127.0.0.1", free), small, "host")
    assert found.proxies == {"": free, "wifi": free + 1, "lte": free + 2}
    assert way_outside.in_words(found) == [
        f"proxy over all links: http://127.0.0.1:{free} (HTTP and SOCKS5)",
        f"proxy over wifi: http://127.0.0.1:{free + 1} (HTTP and SOCKS5)",
        f"proxy over lte: http://127.0.0.1:{free + 2} (HTTP and SOCKS5)",
    ]


def test_proxies_on_all_addresses_are_a_warning(small: Scenario, port: int) -> None:
    free = free_ports(3)
    found = wanted([], False, ("0.0.0.0", free), small, "host")
    assert found.listen == "0.0.0.0"
    assert way_outside.urls(found)[""] == f"http://127.0.0.1:{free}"
    assert "whoever reaches 0.0.0.0" in way_outside.in_words(found)[-1]
    with pytest.raises(ValueError, match=r"port 7 of 192.0.2.9: Cannot assign requested address"):
        wanted([], False, ("192.0.2.9", 7), small, "host")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://there/", "no such URL; allowed: http or https"),
        ("http:///x", "no such URL"),
        ("http://me:secret@there/", "no such URL; .* and no user"),
        ("http://there:99999/", "no such URL"),
        ("http://127.0.0.1:1/", r"127\.0\.0\.1:1 does not answer: Connection refused"),
        ("http://no-such-host.invalid/", r"no-such-host\.invalid: "),
    ],
)
def test_an_origin_that_cannot_be_is_one_error(
    small: Scenario, port: int, url: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_outside, "CONNECT_TIMEOUT_S", 0.2)
    with pytest.raises(ValueError, match=words):
        wanted([url], False, None, small, "host")


def test_a_server_that_is_just_being_started_is_waited_for(
    small: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_outside, "CONNECT_TIMEOUT_S", 60.0)
    port = free_ports(3)
    late = socket.socket()

    def begin() -> None:
        late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        late.bind(("127.0.0.1", port))
        late.listen()

    timer = threading.Timer(0.3, begin)
    timer.start()
    with late:
        found = wanted([f"http://127.0.0.1:{port}/"], False, None, small, "host")
        timer.join()
    assert found.origins[0].to == ("127.0.0.1", port)


def test_a_port_that_is_taken_is_said(small: Scenario, port: int) -> None:
    with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1: Address already in use"):
        wanted([], False, ("127.0.0.1", port), small, "host")


def test_a_missing_program_is_said(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "obstacle", lambda: "slirp4netns is missing: apt-get install it")
    with pytest.raises(ValueError, match="no way outside: slirp4netns is missing"):
        wanted([], True, None, small, "guest")


def with_families(scenario: Scenario, network: Families, lte: Families) -> Scenario:
    """The scenario with these families of the network and of LTE; other links have the network's."""
    links = {
        name: replace(link, families=lte if name == "lte" else network)
        for name, link in scenario.links.items()
    }
    return replace(scenario, network=NetworkSettings(network), links=links)


def test_a_lab_with_ipv6_names_what_has_no_name(small: Scenario, port: int) -> None:
    """A URL with an address would be of one family."""
    mixed = with_families(small, (4, 6), (6,))
    url = f"http://localhost:{port}/a"
    (origin,) = wanted([url], False, None, mixed, "host").origins
    assert (origin.url, origin.name) == (f"http://origin-1.linklab:{port}/a", "origin-1.linklab")
    assert origin.addresses((4, 6)) == ("10.0.1.1", "2001:db8:0:1::1")
    assert origin.addresses((6,)) == ("2001:db8:0:1::1",)
    assert origin.to == ("127.0.0.1", port)


def test_what_a_link_of_ipv6_alone_cannot_reach_is_said_at_the_start(
    small: Scenario, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed, both = (with_families(small, (4, 6), lte) for lte in ((6,), (4, 6)))
    with pytest.raises(ValueError, match=r"--outside: lte has IPv6 only, .* by IPv4 only; needed:"):
        wanted([], True, None, mixed, "guest")
    assert wanted([], True, None, both, "guest").resolver is not None
    monkeypatch.setattr(way_outside, "_require_answer", lambda *_: None)
    words = (
        r"^--origin http://192\.0\.2\.7/: lte has IPv6 only, and 192\.0\.2\.7 is of IPv4; needed: "
    )
    with pytest.raises(ValueError, match=words):
        wanted(["http://192.0.2.7/"], False, None, mixed, "host")
    (kept,) = wanted(["http://192.0.2.7/"], False, None, both, "host").origins
    assert (kept.url, kept.addresses((4, 6))) == ("http://192.0.2.7/", ("192.0.2.7",))
