"""Resolves which hosts outside a lab may reach, and which ports lead into it."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from linklab.core.free_ports import first_of, held_ports
from linklab.core.ip_family import IPV4, IPV6, Families
from linklab.lab.network.services import Origin, Outside
from linklab.places.guest import gateway
from linklab.realtime.address import from_here, is_loopback, to_text
from linklab.runs.reach import Reach
from linklab.scenario import Scenario

LAB = ipaddress.IPv4Network("10.0.0.0/8")
"""The lab's own addresses. An origin with one of them gets another one in the lab."""

_FIRST = ipaddress.IPv4Address("10.0.1.1")
_PORTS = {"http": 80, "https": 443}
CONNECT_TIMEOUT_S = 5.0
"""The time for an origin to answer, or to start."""

_RESOLVER_FILE = Path("/etc/resolv.conf")

_HELLO, _WELCOME = b"\x05\x01\x00", b"\x05\x00"
"""What a client of SOCKS5 says first, and what the proxy answers (RFC 1928)."""
_LOOK_S = 1.0


def wanted(
    origins: Sequence[str],
    everything: bool,
    proxy: tuple[str, int] | None,
    scenario: Scenario,
    place: str,
    go_on: Callable[[], None] = lambda: None,
) -> Reach:
    """Returns what to open for a lab in `place`, which is `guest` or `host`.

    `proxy` is the address and the first port of the proxies, 0 for free ones. They listen at once.
    `go_on` is called before each wait. Raises ValueError if an origin is no URL, has no address or
    does not answer, if a link of IPv6 alone cannot reach it, or if a port is in use.
    """
    missing = gateway.obstacle() if place == "guest" else None
    if missing is not None:
        raise ValueError(f"the guest has no way outside: {missing}")
    families = scenario.network.families
    found = []
    for number, url in enumerate(origins):
        go_on()
        found.append(_origin(url, number, families))
    _require_reached(scenario, found, everything=everything)
    opened = Outside(
        origins=tuple(_seen_from(place, one) for one in found),
        resolver=_resolver(place) if everything else None,
        reaches_loopback=any(ipaddress.ip_address(one.to[0]).is_loopback for one in found),
    )
    if proxy is None:
        return Reach(opened)
    names = ["", *scenario.links]
    try:
        held = held_ports(*proxy, len(names))
    except OSError as error:
        where = proxy[0] if error.filename is None else f"port {error.filename} of {proxy[0]}"
        raise ValueError(f"--listen-proxy: {where}: {error.strerror}") from None
    ports = {name: first_of(held) + number for number, name in enumerate(names)}
    return Reach(msgspec.structs.replace(opened, proxies=ports, listen=proxy[0]), held)


def _origin(url: str, number: int, families: Families) -> Origin:
    """Makes an origin with its address in the lab and its address outside.

    A lab with IPv6 gives it addresses of the plan, and a name if it has none. A URL with an address
    would be of one family.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError):
        parts, port = None, 0
    if parts is None or not parts.hostname or parts.username is not None:
        raise ValueError(
            f"--origin {url}: no such URL; allowed: http or https, a host, perhaps a port and path, "
            "and no user"
        )
    try:
        found = socket.getaddrinfo(parts.hostname, port, socket.AF_INET, socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise ValueError(f"--origin {url}: {parts.hostname}: {error.strerror}") from None
    address = str(found[0][4][0])
    try:
        _require_answer(address, port)
    except OSError as error:
        raise ValueError(
            f"--origin {url}: {address}:{port} does not answer: {error.strerror or error}"
        ) from None
    outside = ipaddress.IPv4Address(address)
    named = parts.hostname != "localhost" and not _is_address(parts.hostname)
    name = parts.hostname if named else ""
    of_plan = outside.is_loopback or outside in LAB
    if IPV6 in families and (of_plan or named):
        of_plan, name = True, name or f"origin-{number + 1}.linklab"
    inside = str(_FIRST + number if of_plan else outside)
    host = name or inside
    here = parts._replace(netloc=host if parts.port is None else f"{host}:{port}").geturl()
    return Origin(here, name, inside, port, (address, port))


def _require_reached(scenario: Scenario, origins: Sequence[Origin], *, everything: bool) -> None:
    """Refuses what links of IPv6 alone cannot reach."""
    link = next((name for name, one in scenario.links.items() if IPV4 not in one.families), None)
    if link is None:
        return
    needed = f"needed: network: {{ip: both}}, and {link} without ip: 6"
    if everything:
        raise ValueError(
            f"--outside: {link} has IPv6 only, and the lab reaches everything outside by IPv4 only; "
            f"{needed}, or --origin"
        )
    for one in origins:
        if not one.is_of_plan:
            raise ValueError(
                f"--origin {one.url}: {link} has IPv6 only, and {one.address} is of IPv4; {needed}, "
                "or a URL with the server's name"
            )


def _require_answer(address: str, port: int) -> None:
    """Raises OSError if no server answers within `CONNECT_TIMEOUT_S`; it may just be starting."""
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            socket.create_connection((address, port), CONNECT_TIMEOUT_S).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _is_address(host: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return False


def _seen_from(place: str, origin: Origin) -> Origin:
    if place == "host":
        return origin
    host, port = origin.to
    return msgspec.structs.replace(origin, to=(gateway.seen_from_guest(host), port))


def _resolver(place: str) -> tuple[str, int]:
    """Returns the address of the outside name server. Raises ValueError if there is none."""
    if place == "guest":
        return (gateway.RESOLVER, 53)
    for line in _RESOLVER_FILE.read_text().splitlines():
        word, _, address = line.strip().partition(" ")
        if word == "nameserver" and ":" not in address:
            return (address.strip(), 53)
    raise ValueError(f"--outside: {_RESOLVER_FILE} names no server with an IPv4 address")


def urls(outside: Outside) -> dict[str, str]:
    """Returns the proxies' URLs on this machine by link, "" for all links. Pure."""
    return {
        name: f"http://{to_text(from_here((outside.listen, port)))}"
        for name, port in outside.proxies.items()
    }


def answers(outside: Outside) -> bool:
    """Tells whether the proxy over all links answers already, or there is none."""
    if "" not in outside.proxies:
        return True
    proxy = from_here((outside.listen, outside.proxies[""]))
    with contextlib.suppress(OSError), socket.create_connection(proxy, _LOOK_S) as probe:
        probe.sendall(_HELLO)
        return probe.recv(len(_WELCOME)) == _WELCOME
    return False


def in_words(outside: Outside) -> list[str]:
    """Describes what is opened, line by line."""
    said = []
    for one in outside.origins:
        said.append(f"behind the links: {one.url} ({one.address}:{one.port})")
    if outside.resolver is not None:
        said.append("the lab reaches whatever this machine does, by TCP and UDP over IPv4")
    for name, url in urls(outside).items():
        said.append(f"proxy over {name or 'all links'}: {url} (HTTP and SOCKS5)")
    if outside.proxies and not is_loopback(outside.listen):
        said.append(f"whoever reaches {outside.listen} may use the proxies: they have no password")
    return said
