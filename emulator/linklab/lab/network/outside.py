"""Connects a lab on the real clock to the outside, beyond its server host.

    client ═ links ═ server ──── outside ┄┄ relay ┄┄ this machine, and what it reaches

The node `outside` accepts connections to every address. A relay (`relay/connections.py`) joins each of
them to a connection of the machine's. So the kernel's TCP carries the data over the emulated links, and
a lossless connection carries it beyond. UDP is forwarded datagram by datagram (`relay/flows.py`). In
the other direction ports of the machine lead to `multilink proxy` on the client host. Nothing else is
open to the lab's hosts. But a program that is root in the guest can enter the namespace of the guest's
device. From there it reaches everything that slirp4netns reaches (SECURITY.md).
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from linklab.core.ip_family import IPV4, IPV6, in_family
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.kernel.netlink import Channel
from linklab.lab.network import nat, relays
from linklab.lab.network.cables import connect
from linklab.lab.network.hosts import LOOPBACK, Host, LabError, start_host
from linklab.lab.network.lab import Lab
from linklab.lab.network.nodes import Router
from linklab.lab.network.routes import EVERYWHERE, add_route
from linklab.lab.network.services import LISTENERS, Outside
from linklab.lab.network.topology import OUTSIDE, SERVER, Port
from linklab.scenario import Scenario

_SERVER_PORT = Port(SERVER, "server-outside", "10.0.254.1")
_OWN_PORT = Port(OUTSIDE, "outside-server", "10.0.254.2")
_LISTENS_S: Final = 5

DNS_ADDRESS: Final = "10.0.0.53"
"""The name server's address in the lab, if the lab may reach everything outside."""

PORTS: Final = (22, 80, 443, 853, 3000, 5000, 8000, 8080, 8443, 8888, 9000)
"""The TCP ports that lead outside if everything may be reached. Other ports are refused."""

UDP_PORTS: Final = (53, 123, 443, 853, 3478, 4433, 8443)
"""The same of UDP: names, time, QUIC and STUN."""


def open_device(name: str, address: str, gateway: str) -> None:
    """Sets up this namespace's device, with a default route to its gateway."""
    with contextlib.closing(Channel()) as channel:
        index = rtnetlink.interface(channel.request(rtnetlink.find_interface(name))).index
        channel.request(rtnetlink.add_address(index, address, 24))
        channel.request(rtnetlink.set_up(index, up=True))
        channel.request(rtnetlink.set_route(EVERYWHERE, gateway, index))


def _add_node(lab: Lab, scenario: Scenario, stack: contextlib.ExitStack) -> Host:
    """Connects the outside to the server host, and routes all addresses to it that are not in the
    lab."""
    families = scenario.network.families
    outside = start_host(OUTSIDE, Router, has_ipv6=IPV6 in families)
    stack.callback(outside.node.terminate)
    tcp = scenario.tcp
    write_sysctls(outside.node.namespace, tcp.sysctls(tcp.congestion_control.server))
    lab.hosts[OUTSIDE] = outside
    near, far = (replace(one, families=families) for one in (_SERVER_PORT, _OWN_PORT))
    connect(lab.hosts, near, far)
    for link in lab.links.values():
        path = link.path
        for access in path.accesses:
            add_route(lab.hosts[access.node], access.up, access.core, EVERYWHERE)
        add_route(lab.hosts[path.core], path.core_up, path.after_core, EVERYWHERE)
        add_route(outside, far, near, path.client_network, path.families)
        if IPV4 in path.families:
            add_route(outside, far, near, f"{nat.address_of(path)}/32", (IPV4,))
    add_route(lab.server, near, far, EVERYWHERE)
    for family in families:
        everywhere = in_family(EVERYWHERE, family)
        outside.channel.request(rtnetlink.set_own(everywhere, LOOPBACK))
    return outside


class _Proxy:
    """A `multilink proxy` on the client host, until it is closed."""

    def __init__(self, host: Host, argv: list[str], port: int, words: IO[bytes]) -> None:
        self._host, self._argv, self._port, self._words = host, argv, port, words
        self._process = host.start(argv, stderr=words)

    def begin_anew(self) -> None:
        """Starts it anew: it has no connections then, and has measured nothing. Raises LabError if it
        does not listen soon."""
        relays.ended(self._process)
        self._process = self._host.start(self._argv, stderr=self._words)
        with inside(self._host.node.namespace):
            for _ in range(_LISTENS_S * 1000):
                with contextlib.suppress(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", self._port)).close()
                    return
                time.sleep(0.001)
        raise LabError(f"the proxy at port {self._port} does not listen after {_LISTENS_S} s")

    def close(self) -> None:
        relays.ended(self._process)


@contextlib.contextmanager
def joined(
    lab: Lab, scenario: Scenario, wanted: Outside, multilink: str, log: Path, *, in_guest: bool
) -> Iterator[Callable[[], None]]:
    """Connects the lab to the outside during the block. `log` is the file for the proxies' errors.
    In a guest, its gateway leads to the proxies. Yields a function that ends all connections and
    starts the proxies anew."""
    with contextlib.ExitStack() as stack:
        outside = _add_node(lab, scenario, stack)
        ways: list[tuple[socket.socket, tuple[str, int] | None]] = []
        with inside(outside.node.namespace):
            for origin in wanted.origins:
                for address in origin.addresses(scenario.network.families):
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                        ways.append((relays.listening(address, origin.port, kind), origin.to))
            if wanted.resolver is not None:
                ways.append((relays.listening(DNS_ADDRESS, 53, socket.SOCK_DGRAM), wanted.resolver))
                for port in PORTS:
                    ways.append((relays.listening("0.0.0.0", port, socket.SOCK_STREAM), None))
                for port in UDP_PORTS:
                    ways.append((relays.listening("0.0.0.0", port, socket.SOCK_DGRAM), None))
        for sock, _ in ways:
            stack.callback(sock.close)
        stack.callback(relays.ended, relays.started(ways))
        proxies: list[_Proxy] = []
        if wanted.proxies:
            proxies += _start_proxies(lab, wanted, multilink, log, stack, in_guest=in_guest)

        def begin_anew() -> None:
            for one in proxies:
                one.begin_anew()
            outside.abort_connections()

        yield begin_anew


def _start_proxies(
    lab: Lab,
    wanted: Outside,
    multilink: str,
    log: Path,
    stack: contextlib.ExitStack,
    *,
    in_guest: bool,
) -> list[_Proxy]:
    """Starts a proxy on the client host for each port, and the relay that leads to them."""
    proxies = []
    words_of_all = stack.enter_context(log.open("ab"))
    ways: list[tuple[socket.socket, tuple[str, int] | None]] = []
    given = os.environ.pop(LISTENERS, "").split()
    for number, (name, port) in enumerate(wanted.proxies.items()):
        links = lab.links if name == "" else {name: lab.links[name]}
        words = [
            word for one, link in links.items() for word in ("--link", f"{one}={link.path.device}")
        ]
        dns = ["--dns", DNS_ADDRESS] if wanted.resolver is not None else []
        alone = ["--connections", "1"] if len(links) == 1 else []
        argv = [multilink, "proxy", *words, *alone, *dns, "--listen", f"127.0.0.1:{port}"]
        proxies.append(_Proxy(lab.client, argv, port, words_of_all))
        stack.callback(proxies[-1].close)
        if in_guest:
            sock = relays.listening("0.0.0.0", port, socket.SOCK_STREAM)
        else:
            sock = socket.socket(fileno=int(given[number]))
            sock.set_inheritable(False)
        stack.callback(sock.close)
        ways.append((sock, ("127.0.0.1", port)))
    # In a guest, its gateway opens the sockets of associations: it is nearer to the clients.
    relay = relays.started(ways, lab.client, greets=in_guest, associates=not in_guest)
    stack.callback(relays.ended, relay)
    return proxies
