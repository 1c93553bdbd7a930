"""The lab: Mininet hosts joined by cables, addressed, routed and shaped.

Uses Mininet's hosts and links but not its traffic control (mininet#650 deletes
and re-adds qdiscs), its network class (which changes the machine's sysctls) or
its clean-up (which kills by name pattern). Interfaces are created inside the
hosts' namespaces, never in the machine's own, so labs cannot meet. The process that
holds a lab is the first of a PID namespace or of a guest, so nothing outlives it.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mininet.link import Link
from mininet.node import Node
from pyroute2 import IPRoute

from linklab import topology
from linklab.linkmodel import LinkState, initial_states, seed_for
from linklab.namespace import network_of, open_netlink, write_sysctls
from linklab.offload import switch_off
from linklab.scenario import Scenario, TcpSettings
from linklab.shaping import Delay, RateQueue
from linklab.topology import LINK_PATHS, SERVER_ADDRESS, LinkPath, Port


class LabError(RuntimeError):
    """The lab could not be built or a program in it could not be started."""


@dataclass
class Host:
    """A node of the lab: its Mininet shell, a netlink socket and interface indices."""

    name: str
    node: Node
    netlink: IPRoute
    indices: dict[str, int] = field(default_factory=dict)

    def start(
        self,
        argv: list[str],
        *,
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        stderr: IO[bytes] | int = subprocess.DEVNULL,
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a program on this host."""
        return subprocess.Popen(
            ["mnexec", "-a", str(self.node.pid), *argv],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            cwd=directory,
        )

    def run(self, argv: list[str]) -> None:
        """Runs a program on this host to its end; LabError with its words if it fails."""
        done = subprocess.run(
            ["mnexec", "-a", str(self.node.pid), *argv], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip()
            raise LabError(f"{self.name}: {' '.join(argv)}: {words}")


class ShapedLink:
    """The qdiscs of one link, both directions, and its carrier."""

    def __init__(
        self, path: LinkPath, hosts: dict[str, Host], state: LinkState, queues: tuple[int, int],
        seed: int,
    ) -> None:  # fmt: skip
        self.path = path
        self._access = hosts[path.access]
        down_bytes, up_bytes = queues

        def rate_queue(port: Port, rate_bps: int, queue_bytes: int) -> RateQueue:
            host = hosts[port.node]
            return RateQueue(host.netlink, host.indices[port.interface], rate_bps, queue_bytes)

        def delay(port: Port, direction: str, loss_ratio: float) -> Delay:
            host = hosts[port.node]
            return Delay(
                host.netlink, host.indices[port.interface],
                state.delay_s, state.jitter_s, loss_ratio, seed_for(seed, path.name, direction),
            )  # fmt: skip

        self.down_queue = rate_queue(path.access_down, state.down_rate_bps, down_bytes)
        self.up_queue = rate_queue(path.access_up, state.up_rate_bps, up_bytes)
        self.down_delay = delay(path.core_down, "down", state.loss_ratio)
        self.up_delay = delay(path.core_up, "up", 0.0)
        self.state = state

    def apply(self, state: LinkState) -> None:
        """Puts the link into `state`, touching only what differs from the present one.

        No packet passes a new rate or delay before a carrier goes or an old one after it comes.
        """
        if self.state.up and not state.up:
            self._set_carrier("down")
        if state.down_rate_bps != self.state.down_rate_bps:
            self.down_queue.set_rate(state.down_rate_bps)
        if state.up_rate_bps != self.state.up_rate_bps:
            self.up_queue.set_rate(state.up_rate_bps)
        delays = (state.delay_s, state.jitter_s)
        if (*delays, state.loss_ratio) != (
            self.state.delay_s, self.state.jitter_s, self.state.loss_ratio,
        ):  # fmt: skip
            self.down_delay.set(*delays, state.loss_ratio)
        if delays != (self.state.delay_s, self.state.jitter_s):
            self.up_delay.set(*delays, 0.0)
        if state.up and not self.state.up:
            self._set_carrier("up")
            _add_neighbour(self._access, self.path.access_down, self.path.client)
        self.state = state

    def _set_carrier(self, state: str) -> None:
        """Sets the access node's end of the client's cable, which is the client's carrier."""
        index = self._access.indices[self.path.access_down.interface]
        self._access.netlink.link("set", index=index, state=state)

    @property
    def queues(self) -> dict[str, RateQueue]:
        """The rate queues by direction."""
        return {"down": self.down_queue, "up": self.up_queue}

    @property
    def delays(self) -> dict[str, Delay]:
        """The delay qdiscs by direction."""
        return {"down": self.down_delay, "up": self.up_delay}


def _mac(port: Port) -> str:
    """A locally administered address that is the same in every lab."""
    octets = [int(octet) for octet in port.address.split(".")]
    return "02:00:" + ":".join(f"{octet:02x}" for octet in octets)


def _add_neighbour(host: Host, own: Port, other: Port) -> None:
    """Tells a host the other end's MAC, so that no ARP waits in the shaped queues."""
    host.netlink.neigh(
        "replace", dst=other.address, lladdr=_mac(other),
        ifindex=host.indices[own.interface], state="permanent",
    )  # fmt: skip


@dataclass
class Lab:
    """A running lab: its hosts and its shaped links."""

    hosts: dict[str, Host]
    links: dict[str, ShapedLink]

    @property
    def client(self) -> Host:
        """The end host with both links."""
        return self.hosts[topology.CLIENT]

    @property
    def server(self) -> Host:
        """The end host that serves the payload."""
        return self.hosts[topology.SERVER]


def _start_host(name: str) -> Host:
    node = Node(name)
    try:
        write_sysctls(
            node.pid,
            {
                "net.ipv6.conf.all.disable_ipv6": "1",
                "net.ipv6.conf.default.disable_ipv6": "1",
                "net.ipv4.ip_forward": "1",
                "net.ipv4.conf.all.rp_filter": "0",
                "net.ipv4.conf.default.rp_filter": "0",
            },
        )
        netlink = open_netlink(node.pid)
        netlink.link("set", index=1, state="up")
    except BaseException:
        node.terminate()
        raise
    return Host(name, node, netlink)


def _connect(hosts: dict[str, Host], one: Port, two: Port) -> None:
    first, second = hosts[one.node], hosts[two.node]
    Link(
        first.node, second.node, intfName1=one.interface, intfName2=two.interface,
        addr1=_mac(one), addr2=_mac(two),
    )  # fmt: skip
    for host, port in ((first, one), (second, two)):
        index = host.netlink.link_lookup(ifname=port.interface)[0]
        host.indices[port.interface] = index
        host.netlink.addr("add", index=index, address=port.address, prefixlen=24)
        host.netlink.link("set", index=index, state="up")
        with network_of(host.node.pid):
            switch_off(port.interface)
    _add_neighbour(first, one, two)
    _add_neighbour(second, two, one)


def _route(hosts: dict[str, Host], path: LinkPath) -> None:
    """Routes between the client and the server's one address through this link."""

    def add(host: Host, port: Port, gateway: Port, **destination: object) -> None:
        host.netlink.route(
            "add", gateway=gateway.address, oif=host.indices[port.interface], **destination
        )

    to_server = {"dst": f"{SERVER_ADDRESS}/32"}
    to_client = {"dst": f"{path.client.address}/32"}
    client = hosts[topology.CLIENT]
    add(client, path.client, path.access_down, dst="default", table=path.table)
    add(client, path.client, path.access_down, dst="default", priority=path.table)
    client.netlink.rule("add", src=path.client.address, table=path.table, priority=path.table)
    client.netlink.rule("add", oifname=path.device, table=path.table, priority=path.table + 100)
    add(hosts[path.access], path.access_up, path.core_down, **to_server)
    add(hosts[path.core], path.core_up, path.server, **to_server)
    add(hosts[path.core], path.core_down, path.access_up, **to_client)
    add(hosts[topology.SERVER], path.server, path.core_up, **to_client)


def tcp_sysctls(settings: TcpSettings) -> dict[str, str]:
    """The sysctls of an end host for a scenario's TCP settings."""
    return {
        "net.ipv4.tcp_congestion_control": settings.congestion_control,
        "net.ipv4.tcp_rmem": f"4096 131072 {settings.rmem_max_bytes}",
        "net.ipv4.tcp_wmem": f"4096 65536 {settings.wmem_max_bytes}",
        "net.ipv4.tcp_no_metrics_save": "0" if settings.metrics_save else "1",
    }


@contextlib.contextmanager
def built(scenario: Scenario, seed: int) -> Iterator[Lab]:
    """A lab for `scenario` whose randomness comes from `seed`; gone when the block ends."""
    with contextlib.ExitStack() as stack:
        hosts: dict[str, Host] = {}
        for name in topology.nodes():
            host = _start_host(name)
            stack.callback(host.node.terminate)
            stack.callback(host.netlink.close)
            hosts[name] = host
        for name in (topology.CLIENT, topology.SERVER):
            write_sysctls(hosts[name].node.pid, tcp_sysctls(scenario.tcp))
        hosts[topology.SERVER].netlink.addr("add", index=1, address=SERVER_ADDRESS, prefixlen=32)
        states = initial_states(scenario)
        links = {}
        for name, settings in scenario.links.items():
            path = LINK_PATHS[name]
            for one, two in path.cables:
                _connect(hosts, one, two)
            _route(hosts, path)
            links[name] = ShapedLink(
                path, hosts, states[name],
                (settings.queue_down_bytes, settings.queue_up_bytes), seed,
            )  # fmt: skip
        yield Lab(hosts, links)
