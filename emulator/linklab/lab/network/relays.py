"""Starts relays, which join network namespaces (`linklab.relay`)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Sequence

from linklab.core.ip_family import IPV6, family_of
from linklab.lab.kernel.socket_options import SOCKET_FAMILIES
from linklab.lab.network.hosts import Host
from linklab.relay.faults import make_transparent
from linklab.relay.rule import PROGRAM, Rule

Ways = Sequence[tuple[socket.socket, tuple[str, int] | None]]
"""Sockets, each with where it leads; None is where its peer wanted."""


def listening(
    address: str, port: int, kind: socket.SocketKind, *, mptcp: bool = False
) -> socket.socket:
    """Opens a socket in this namespace, also for an address that is not local. With `mptcp` its
    connections may be Multipath TCP's."""
    family = family_of(address)
    sock = socket.socket(SOCKET_FAMILIES[family], kind, socket.IPPROTO_MPTCP if mptcp else 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # An origin's address and the wildcard may share a port. The more specific one gets the
    # connection.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == IPV6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    make_transparent(sock)
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen(1024)
    return sock


def started(
    sockets: Ways,
    host: Host | None = None,
    *,
    greets: bool = False,
    associates: bool = False,
    breaks: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts a relay that connects from `host`, or from this namespace. `greets`, `associates` and
    `breaks` are those of a `Rule`. One that breaks connections has pipes for its faults."""
    rules = [
        Rule(
            descriptor=one.fileno(),
            to=to,
            udp=one.type == socket.SOCK_DGRAM,
            greets=greets,
            associates=associates,
            breaks=breaks,
        )
        for one, to in sockets
    ]
    argv = [sys.executable, "-I", "-S", str(PROGRAM), json.dumps(rules)]
    before = [] if host is None else ["mnexec", "-a", str(host.pid)]
    return subprocess.Popen(
        [*before, *argv],
        stdin=subprocess.PIPE if breaks else subprocess.DEVNULL,
        stdout=subprocess.PIPE if breaks else None,
        pass_fds=[one.fileno() for one, _ in sockets],
    )


def ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
