"""Breaks and slices the TCP connections of a link, by a relay on its middlebox.

Rules send the packets of the server's ports into the relay, which answers as the server, and connects to
the server as the client. Other packets pass by. With a NAT on the middlebox the relay is behind it.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Final

from linklab.core.impairments import Impairments
from linklab.core.ip_family import in_family, in_url
from linklab.core.link_state import DIRECTIONS, LinkState
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.network import nat, relays
from linklab.lab.network.hosts import LOOPBACK, Host, LabError
from linklab.lab.network.listening import all_listening
from linklab.lab.network.routes import EVERYWHERE
from linklab.lab.network.topology import OUTSIDE, SERVER, LinkPath

_TABLE: Final = 101
_BEFORE_NAT, _AFTER_NAT = nat.TABLE - 1, nat.TABLE + 1
"""Priorities of rules. That of the NAT, which is between them, has the number of its table."""


class ConnectionFaults:
    """Holds the relay of a link. `sysctls` are those of a host that sends as the server does.

    If connections are open, the server resets them first, because the relay does not know them.
    """

    def __init__(
        self, path: LinkPath, hosts: Mapping[str, Host], sysctls: dict[str, str], state: LinkState
    ) -> None:
        assert path.middlebox is not None
        host, server = hosts[path.middlebox.node], hosts[SERVER]
        write_sysctls(host.node.namespace, sysctls)
        ports = _ports(hosts, state)
        with contextlib.ExitStack() as stack, inside(host.node.namespace):
            sockets = []
            for family in path.families:
                for port in ports:
                    everywhere = in_family(EVERYWHERE, family).partition("/")[0]
                    sock = relays.listening(everywhere, port, socket.SOCK_STREAM)
                    sockets.append((stack.enter_context(sock), None))
            self._process = relays.started(sockets, breaks=True)
        self._said = ""
        self.apply(state)
        for family in path.families:
            clients = in_url(in_family(path.client_network, family))
            server.run(["ss", "--kill", "--tcp", "dst", clients])
            host.channel.request(rtnetlink.set_own(in_family(EVERYWHERE, family), LOOPBACK, _TABLE))
            for port in ports:
                for device, priority, from_ports, to_ports in (
                    (nat.DEVICE, _BEFORE_NAT, None, (port, port)),
                    (path.middlebox.up.interface, _BEFORE_NAT, (port, port), None),
                    (path.middlebox.down.interface, _AFTER_NAT, None, (port, port)),
                ):
                    rule = rtnetlink.rule(
                        _TABLE,
                        priority,
                        family=family,
                        arrives_by=device,
                        protocol=socket.IPPROTO_TCP,
                        from_ports=from_ports,
                        to_ports=to_ports,
                    )
                    host.channel.request(rule)

    def apply(self, state: LinkState) -> None:
        """Changes the faults, also of the connections that there are."""
        said = json.dumps({one: _fields(state.impairments(one)) for one in DIRECTIONS})
        if said == self._said:
            return
        self._said = said
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(said.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        if self._process.stdout.readline() != b"\n":
            raise LabError("the relay of connection faults has ended")

    def close(self) -> None:
        with self._process:
            self._process.kill()


def _ports(hosts: Mapping[str, Host], state: LinkState) -> list[int]:
    """Returns the TCP ports of the server, of what is outside, and those that faults name."""
    found = {state.impairments(one).fault_port or 0 for one in DIRECTIONS} - {0}
    for name in (SERVER, OUTSIDE):
        if name in hosts:
            with inside(hosts[name].node.namespace):
                found |= {one.port for one in all_listening() if one.protocol == "tcp"}
    return sorted(found)


def _fields(faults: Impairments) -> dict[str, float]:
    """Returns the fields of `relay.faults.Faults`."""
    return {
        "reset_after_s": faults.reset_after_s or 0.0,
        "reset_bytes": faults.reset_bytes or 0,
        "close_bytes": faults.close_bytes or 0,
        "slice_bytes": faults.slice_bytes or 0,
        "slice_pause_s": faults.slice_pause_s or 0.0,
        "port": faults.fault_port or 0,
    }
