"""Builds the lab: Mininet hosts joined by cables, addressed, routed and shaped.

Uses Mininet's hosts and links. It does not use Mininet's traffic control (mininet#650: it deletes
and adds qdiscs anew), its network class (it changes the machine's sysctls) or its clean-up (it kills
by name). Interfaces are made inside the hosts' namespaces, never in the machine's own, so labs
cannot meet. The process that holds a lab is the first of a PID namespace or of a guest, so no process
outlives the lab.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

from linklab.core.ip_family import IPV6, Families, in_family
from linklab.core.link_state import LinkState
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import write_sysctls
from linklab.lab.network import access_points, topology
from linklab.lab.network.cables import connect, skip_indices
from linklab.lab.network.hosts import LOOPBACK, Host, start_host
from linklab.lab.network.nodes import EndHost, Router
from linklab.lab.network.routes import route
from linklab.lab.network.shaped_link import ShapedLink
from linklab.lab.network.topology import SERVER_ADDRESS, Station
from linklab.lab.shaping.delay import Netem, transit
from linklab.scenario import Scenario


@dataclass
class Lab:
    """A running lab: its hosts and its shaped links."""

    hosts: dict[str, Host]
    links: dict[str, ShapedLink]
    client_name: str = topology.CLIENT

    def seen_from(self, client_name: str) -> Lab:
        """Returns the lab as another client sees it, whose host and addresses are the client's. Its
        links are for reading only."""
        links = {}
        for name, link in self.links.items():
            links[name] = copy.copy(link)
            (own,) = (port for port in link.path.hosts if port.node == client_name)
            links[name].path = replace(link.path, client=own)
        return replace(self, links=links, client_name=client_name)

    @property
    def families(self) -> Families:
        """Returns the families of addresses that any of its links carries."""
        return tuple(sorted({one for link in self.links.values() for one in link.path.families}))

    @property
    def client(self) -> Host:
        """Returns the end host with all links."""
        return self.hosts[self.client_name]

    def abort_connections(self) -> None:
        for host in self.hosts.values():
            if isinstance(host.node, EndHost):
                host.abort_connections()

    @property
    def server(self) -> Host:
        return self.hosts[topology.SERVER]


@contextlib.contextmanager
def built(
    scenario: Scenario,
    states: dict[str, LinkState],
    seed: int,
    slack_s: float,
    first: str | None = None,
    *,
    takes_commands: bool = False,
) -> Iterator[Lab]:
    """Builds a lab for `scenario` with its links in `states`, and removes it when the block ends.

    A socket that names no link takes the link called `first` (`topology.link_paths`). `seed` seeds
    losses and jitter. `slack_s` is how late a timer may fire without costing rate. If the lab
    `takes_commands`, these may impair any link.
    """
    others = topology.others_of(scenario)
    may_be_impaired = scenario.links if takes_commands else scenario.impaired_links
    paths = topology.link_paths(scenario.links, first, may_be_impaired, others)
    stations = sorted({host for hosts in others.values() for host in hosts})
    added_s = {
        topology.client_host(number): one.added_rtt_s
        for number, one in enumerate(scenario.clients, 1)
    }
    families = scenario.network.families
    with contextlib.ExitStack() as stack:
        hosts: dict[str, Host] = {}
        middle = [node for path in paths.values() for node in path.nodes]
        for name in (topology.CLIENT, *stations, *middle, topology.SERVER):
            kind = Router if name in middle else EndHost
            host = start_host(name, kind, has_ipv6=IPV6 in families)
            stack.callback(host.node.terminate)
            hosts[name] = host
        client, server = hosts[topology.CLIENT], hosts[topology.SERVER]
        skip_indices(client)
        tcp = scenario.tcp
        controls = dict.fromkeys((topology.CLIENT, *stations), tcp.congestion_control.client)
        controls[topology.SERVER] = tcp.congestion_control.server
        for name, control in controls.items():
            write_sysctls(hosts[name].node.namespace, tcp.sysctls(control))
        for number, name in enumerate(stations, 1):
            skip_indices(hosts[name], number)
        for family in families:
            address, bits = in_family(f"{SERVER_ADDRESS}/32", family).split("/")
            server.channel.request(rtnetlink.add_address(LOOPBACK, address, int(bits)))
        links = {}
        for name, settings in scenario.links.items():
            path = paths[name]
            for one, two in path.cables:
                connect(hosts, one, two)
            if path.accesses[0].air is not None:
                access_points.join(hosts, path)
            route(hosts, path)
            for station in path.stations:
                _delay(hosts, station, added_s.get(station.host.node, 0.0), seed)
            links[name] = ShapedLink(
                path,
                hosts,
                states[name],
                settings,
                seed,
                slack_s,
                scenario.delay_tables,
                tcp.sysctls(controls[topology.SERVER]),
                is_impaired=name in scenario.impaired_links,
            )
            stack.callback(links[name].close)
        yield Lab(hosts, links)


def _delay(hosts: dict[str, Host], station: Station, added_rtt_s: float, seed: int) -> None:
    """Delays a host's packets by half the time each way, on its own cable. So they wait outside the
    link's queues."""
    if not added_rtt_s:
        return
    for port in (station.host, station.air):
        host = hosts[port.node]
        Netem(host.channel, host.indices[port.interface], transit(added_rtt_s / 2), seed)
