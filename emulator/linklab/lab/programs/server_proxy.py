"""Puts a proxy before H2O, on its host: a relay that ends the clients' connections.

As ShadowSocks' server it forwards bytes, speaks Multipath TCP with clients that do, and connects to H2O by TCP
as soon as a client has connected. The loopback device between the two has a round trip.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Final

from linklab.lab.kernel.namespace import inside
from linklab.lab.network import relays
from linklab.lab.network.hosts import Host
from linklab.lab.network.topology import server_addresses
from linklab.scenario import Scenario

BEHIND: Final = "127.0.0.1"
"""Where H2O listens if there is a proxy."""

_PACKETS = 100_000
"""More than netem ever has to hold here."""


@contextlib.contextmanager
def before(host: Host, scenario: Scenario, ports: list[int], *, mptcp: bool) -> Iterator[None]:
    """Runs the scenario's proxy on the server's ports during the block. Raises LabError."""
    rtt_s = scenario.network.proxy_rtt_s
    if rtt_s is None:
        yield
        return
    delay = f"{round(rtt_s / 2 * 1e6)}us"
    shape = f"tc qdisc replace dev lo root netem limit {_PACKETS} delay {delay}"
    host.run(shape.split())
    with contextlib.ExitStack() as stack:
        ways: list[tuple[socket.socket, tuple[str, int] | None]] = []
        with inside(host.node.namespace):
            for address in server_addresses(scenario.network.families):
                for port in ports:
                    sock = relays.listening(address, port, socket.SOCK_STREAM, mptcp=mptcp)
                    ways.append((stack.enter_context(sock), (BEHIND, port)))
        process = relays.started(ways, host)
        stack.callback(relays.ended, process)
        yield
