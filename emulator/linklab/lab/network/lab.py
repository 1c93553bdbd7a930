"""The lab: Mininet hosts joined by cables, addressed, routed and shaped.

Uses Mininet's hosts and links but not its traffic control (mininet#650 deletes
and re-adds qdiscs), its network class (which changes the machine's sysctls) or
its clean-up (which kills by name pattern). Interfaces are created inside the
hosts' namespaces, never in the machine's own, so labs cannot meet. The process that
holds a lab is the first of a PID namespace or of a guest, so nothing outlives it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import IO

from linklab.core.link_state import Direction, LinkState
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.kernel.netlink import Channel
from linklab.lab.kernel.offload import CHECKSUMS, switch_off
from linklab.lab.network import topology
from linklab.lab.network.nodes import Cable, EndHost, Router
from linklab.lab.network.topology import SERVER_ADDRESS, Access, LinkPath, Port
from linklab.lab.shaping.delay import Delay, Transit
from linklab.lab.shaping.rate_queue import RateQueue
from linklab.lab.shaping.tc import Counters
from linklab.models.seeds import seed_for
from linklab.scenario import LinkSettings, Scenario

_BRIDGE = "air"
LOOPBACK = 1
EVERYWHERE = "0.0.0.0/0"
_SERVICE_PORTS, _ASKING_PORTS = (1, 32767), (32768, 60999)
"""Where services listen, and what Linux gives sockets that name no port (ip_local_port_range)."""
_BRIDGE_LISTENING, _BRIDGE_FORWARDING = 1, 3  # linux/if_bridge.h
"""A port that is disabled would be enabled at once: the kernel tells the bridge that a device has
changed, and it takes that for a carrier that has come (net/bridge/br_if.c: br_port_carrier_check)."""


class LabError(RuntimeError):
    """The lab could not be built or a program in it could not be started."""


@dataclass
class Host:
    """A node of the lab, Mininet's node of it and its interfaces' indices."""

    name: str
    node: Router
    indices: dict[str, int] = field(default_factory=dict)

    @property
    def channel(self) -> Channel:
        """A netlink socket in its network namespace."""
        return self.node.channel

    @property
    def pid(self) -> int:
        """The process number by which programs are started here. LabError on a router."""
        if not isinstance(self.node, EndHost):
            raise LabError(f"{self.name}: no program can be started on a router")
        return int(self.node.pid)

    def received_bytes(self, device: str) -> int:
        """What an interface has received since it was made."""
        return self.interface(device).received_bytes

    def interface(self, device: str) -> rtnetlink.Interface:
        """What the kernel says of an interface."""
        return rtnetlink.interface(
            self.channel.request(rtnetlink.get_interface(self.indices[device]))
        )

    def is_up(self, device: str) -> bool:
        """Whether an interface has its carrier."""
        answer = self.channel.request(rtnetlink.get_interface(self.indices[device]))
        return rtnetlink.interface(answer).operational_state == rtnetlink.IS_UP

    def start(
        self,
        argv: list[str],
        *,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        stderr: IO[bytes] | int = subprocess.DEVNULL,
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a program on this host. The PATH of its environment is its own: mnexec is found
        by this process'."""
        path = os.environ.get("PATH")
        is_own = environment is None or environment.get("PATH") == path
        return subprocess.Popen(
            ["mnexec", "-a", str(self.pid), *argv],
            executable=None if is_own else shutil.which("mnexec"),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            cwd=directory,
        )

    def run(self, argv: list[str]) -> None:
        """Runs a program on this host to its end; LabError with its words if it fails."""
        done = subprocess.run(
            ["mnexec", "-a", str(self.pid), *argv], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip()
            raise LabError(f"{self.name}: {' '.join(argv)}: {words}")


class _Leg:
    """The qdiscs of one access node and of the core's ports around it, both directions."""

    def __init__(
        self,
        access: Access,
        hosts: dict[str, Host],
        state: LinkState,
        settings: LinkSettings,
        seed: int,
        slack_s: float,
    ) -> None:
        self.access = access

        def rate_queue(port: Port, rate_bps: int, queue_bytes: int) -> RateQueue:
            host = hosts[port.node]
            index = host.indices[port.interface]
            discipline = settings.queue_discipline
            return RateQueue(host.channel, index, rate_bps, queue_bytes, discipline, slack_s)

        self.queues = {
            "down": rate_queue(access.down, state.down_rate_bps, settings.queue_down_bytes),
            "up": rate_queue(access.up, state.up_rate_bps, settings.queue_up_bytes),
        }
        core = hosts[access.core.node]
        self.delay = Delay(
            core.channel, core.indices[access.core.interface], _transit(state, "down"), seed
        )

    def apply(self, state: LinkState, *, is_attached: bool) -> None:
        """Rates and delay, only where they differ from the present ones. Where the client is not
        attached, and where the link loses everything, the queues are shut."""
        rates = {"down": state.down_rate_bps, "up": state.up_rate_bps}
        held = {"down": state.hold_down, "up": state.hold_up}
        for direction, queue in self.queues.items():
            is_shut = not is_attached or state.loses_all(direction)
            queue.set(rates[direction], is_held=held[direction], is_shut=is_shut)
        self.delay.set(_transit(state, "down"))


def _transit(state: LinkState, direction: str) -> Transit:
    """What packets meet away from the radio, whatever that loses."""
    if direction == "up":
        return Transit(state.delay_s, state.jitter_s)
    return Transit(state.delay_s, state.jitter_s, state.loss_ratio, state.loss_burst_packets)


class ShapedLink:
    """The qdiscs of one link, its carrier, and which access point the client is attached to."""

    def __init__(
        self,
        path: LinkPath,
        hosts: dict[str, Host],
        state: LinkState,
        settings: LinkSettings,
        seed: int,
        slack_s: float,
    ) -> None:
        self.path = path
        self._hosts = hosts
        self._legs = {}
        for number, access in enumerate(path.accesses):
            names = () if number == 0 else (access.node,)
            self._legs[access.node] = _Leg(
                access, hosts, state, settings, seed_for(seed, path.name, "down", *names), slack_s
            )
        self._leg = next(iter(self._legs.values()))
        self._roams = len(self._legs) > 1
        core = hosts[path.core]
        self._up_delay = Delay(
            core.channel,
            core.indices[path.core_up.interface],
            _transit(state, "up"),
            seed_for(seed, path.name, "up"),
        )
        self.state = replace(state, up=True, lease=0, access_point="")
        for leg in self._legs.values():
            self._set_attached(leg, attached=False)
            leg.apply(state, is_attached=not self._roams)
        self.apply(state)

    def apply(self, state: LinkState) -> None:
        """Puts the link into `state`, touching only what differs from the present one.

        No packet passes a new rate or delay before a carrier goes or an old one after it comes.
        """
        before = self.state
        if before.up and not state.up:
            self._set_carrier(up=False)
        if state.access_point != before.access_point and before.access_point in self._legs:
            self._set_attached(self._leg, attached=False)
            self._leg.apply(before, is_attached=False)
        self._leg = self._legs.get(state.access_point, self._leg)
        is_attached = not self._roams or state.access_point in self._legs
        self._leg.apply(state, is_attached=is_attached)
        self._up_delay.set(_transit(state, "up"))
        if state.access_point != before.access_point and state.access_point in self._legs:
            self._route_down()
            self._set_attached(self._leg, attached=True)
        if state.lease != before.lease:
            self._renumber(before.lease, state.lease)
        if state.up and not before.up:
            self._set_carrier(up=True)
        if state.up and (True, state.access_point, state.lease) != (
            before.up,
            before.access_point,
            before.lease,
        ):
            self._add_client_neighbour(state.lease)
        self.state = state

    def _set_carrier(self, *, up: bool) -> None:
        host = self._hosts[self.path.carrier.node]
        index = host.indices[self.path.carrier.interface]
        host.channel.request(rtnetlink.set_up(index, up=up))

    def fill_checksums(self) -> None:
        """Has packets on the client's device carry their checksums, as they would on a wire; the
        kernel else leaves them out between the lab's hosts."""
        for port in (self.path.client, self.path.carrier):
            with inside(self._hosts[port.node].node.namespace):
                switch_off(port.interface, CHECKSUMS)

    def _set_attached(self, leg: _Leg, *, attached: bool) -> None:
        """Opens or shuts the air between the client and an access point."""
        port = leg.access.air
        if port is not None:
            air = self._hosts[port.node]
            state = _BRIDGE_FORWARDING if attached else _BRIDGE_LISTENING
            index = air.indices[port.interface]
            air.channel.request(rtnetlink.set_port_state(index, state))

    def _route_down(self) -> None:
        """Leads what is for the client to the access point that it is attached to."""
        core = self._hosts[self.path.core]
        index = core.indices[self._leg.access.core.interface]
        gateway = self._leg.access.up.address
        core.channel.request(rtnetlink.set_route(self.path.client_network, gateway, index))

    def _add_client_neighbour(self, lease: int) -> None:
        access = self._leg.access
        _add_neighbour(
            self._hosts[access.node], access.down, self.path.client, self.path.lease(lease)
        )

    def _renumber(self, old: int, new: int) -> None:
        """Gives the client another address; its old sockets are aborted, as Android does."""
        client = self._hosts[self.path.client.node]
        index = client.indices[self.path.client.interface]
        client.channel.request(rtnetlink.delete_address(index, self.path.lease(old), 24))
        client.channel.request(rtnetlink.add_address(index, self.path.lease(new), 24))
        _route_client(client, self.path)
        client.run(["ss", "--kill", "--tcp", "src", self.path.lease(old)])

    def settle(self) -> None:
        """What rate queues have to do from time to time after a change."""
        for leg in self._legs.values():
            for queue in leg.queues.values():
                queue.settle()

    def own_counters(self, direction: str) -> Mapping[str, int]:
        """What only a direction's queue discipline counts, over all access points together."""
        counted = Counter[str]()
        for leg in self._legs.values():
            counted.update(leg.queues[direction].own_counters())
        return counted

    def counters(self) -> dict[Direction, tuple[Counters, int]]:
        """By direction the rate queues' counters over all access points, and packets lost."""
        down, up = self.queue_counters("down"), self.queue_counters("up")
        at_random = sum(leg.delay.counters().dropped_packets for leg in self._legs.values())
        return {"down": (down, down.lost_packets + at_random), "up": (up, up.lost_packets)}

    def queue_counters(self, direction: str) -> Counters:
        """The counters of the rate queues of a direction, over all access points together."""
        counted = [leg.queues[direction].counters() for leg in self._legs.values()]
        if len(counted) == 1:
            return counted[0]
        return Counters(*(sum(values) for values in zip(*map(astuple, counted), strict=True)))


def _mac(port: Port) -> str:
    """A locally administered address that is the same in every lab."""
    if port.address:
        kind, octets = 0, bytes(int(octet) for octet in port.address.split("."))
    else:
        kind, octets = 1, zlib.crc32(port.interface.encode()).to_bytes(4, "big")
    return f"02:{kind:02x}:" + ":".join(f"{octet:02x}" for octet in octets)


def _add_neighbour(host: Host, own: Port, other: Port, address: str = "") -> None:
    """Tells a host the other end's MAC, so that no ARP waits in the shaped queues."""
    index = host.indices[own.interface]
    host.channel.request(rtnetlink.set_neighbour(index, address or other.address, _mac(other)))


@dataclass
class Lab:
    """A running lab: its hosts and its shaped links."""

    hosts: dict[str, Host]
    links: dict[str, ShapedLink]

    @property
    def client(self) -> Host:
        """The end host with all links."""
        return self.hosts[topology.CLIENT]

    @property
    def server(self) -> Host:
        """The end host that serves the payload."""
        return self.hosts[topology.SERVER]


def start_host(name: str, kind: type[Router]) -> Host:
    """A node with its namespace. Its `node.terminate` lets it go."""
    node = kind(name)
    try:
        write_sysctls(
            node.namespace,
            {
                "net.ipv6.conf.all.disable_ipv6": "1",
                "net.ipv6.conf.default.disable_ipv6": "1",
                "net.ipv4.ip_forward": "1",
                "net.ipv4.conf.all.rp_filter": "0",
                "net.ipv4.conf.default.rp_filter": "0",
            },
        )
        node.channel.request(rtnetlink.set_up(LOOPBACK, up=True))
    except BaseException:
        node.terminate()
        raise
    return Host(name, node)


def _index_of(host: Host, interface: str) -> int:
    return rtnetlink.interface(host.channel.request(rtnetlink.find_interface(interface))).index


def _skip_indices(host: Host) -> None:
    """Makes the host's interfaces count from higher on than those at the other ends.

    Linux tells a changed carrier at once only if a cable's ends have different indices, and up
    to a second late otherwise (net/core/link_watch.c, linkwatch_urgent_event).
    """
    host.channel.request(rtnetlink.add_pair("skipped", "skipped-peer"))
    host.channel.request(rtnetlink.delete(_index_of(host, "skipped")))


def connect(hosts: dict[str, Host], one: Port, two: Port) -> None:
    """Lays a cable between two ports, addressed and up."""
    first, second = hosts[one.node], hosts[two.node]
    Cable(
        first.node,
        second.node,
        (one.interface, two.interface),
        (_mac(one), _mac(two)),
    )
    for host, port in ((first, one), (second, two)):
        index = _index_of(host, port.interface)
        host.indices[port.interface] = index
        if port.address:
            host.channel.request(rtnetlink.add_address(index, port.address, 24))
        host.channel.request(rtnetlink.set_up(index, up=True))
        with inside(host.node.namespace):
            switch_off(port.interface)
    if one.address and two.address:
        _add_neighbour(first, one, two)
        _add_neighbour(second, two, one)


def _wait_until_up(host: Host, index: int) -> None:
    """Until then a bridge refuses to open a port (Linux br_set_port_state)."""
    for _ in range(1000):
        answer = host.channel.request(rtnetlink.get_interface(index))
        if rtnetlink.interface(answer).operational_state == rtnetlink.IS_UP:
            return
        time.sleep(0.001)
    raise LabError(f"an interface of {host.name} does not come up")


def _join_air(hosts: dict[str, Host], path: LinkPath) -> None:
    """Makes the air a bridge between the client and its access points.

    Ports towards access points learn nothing, so that what is for the gateway goes wherever
    the client is attached; all access points share the gateway's address, IP and MAC.
    """
    air = hosts[path.carrier.node]
    air.channel.request(rtnetlink.add_bridge(_BRIDGE))
    bridge = _index_of(air, _BRIDGE)
    air.channel.request(rtnetlink.set_up(bridge, up=True))
    for access in path.accesses:
        assert access.air is not None
        index = air.indices[access.air.interface]
        air.channel.request(rtnetlink.set_master(index, bridge))
        air.channel.request(rtnetlink.set_port_learning(index, learns=False))
        _wait_until_up(air, index)
    air.channel.request(rtnetlink.set_master(air.indices[path.carrier.interface], bridge))
    client, gateway = hosts[topology.CLIENT], path.accesses[0].down
    _add_neighbour(client, path.client, gateway)


def _route_client(client: Host, path: LinkPath) -> None:
    """The client's routes through this link: by default in its own table, by priority in the main
    one, and the one to the server's end of the link (`_route_server`)."""
    gateway = path.accesses[0].down.address
    index = client.indices[path.client.interface]
    for message in (
        rtnetlink.set_route(EVERYWHERE, gateway, index, table=path.table),
        rtnetlink.set_route(EVERYWHERE, gateway, index, priority=path.priority),
        rtnetlink.set_route(f"{path.server.address}/32", gateway, index),
    ):
        client.channel.request(message)


def _route_server(server: Host, path: LinkPath) -> None:
    """Routes from the server to the client through this link.

    A UDP socket on all addresses answers from the source of its route: Linux forgets which address
    was asked. The server's routes have its one address as their source. The client's have the
    address of their link. So the server asks the client from its own end of the link, to which the
    client's route leads by the same link. Ports tell what asks from what answers: it is UDP from a
    port that Linux chose to a service's.
    """
    gateway, index = path.core_up.address, server.indices[path.server.interface]
    network = path.client_network
    for message in (
        rtnetlink.set_route(network, gateway, index, source=SERVER_ADDRESS),
        rtnetlink.set_route(network, gateway, index, table=path.table),
        rtnetlink.add_rule_by_udp_ports(
            network, _ASKING_PORTS, _SERVICE_PORTS, path.table, path.table
        ),
    ):
        server.channel.request(message)


def _route(hosts: dict[str, Host], path: LinkPath) -> None:
    """Routes between the client and the server's one address through this link."""

    def add(host: Host, port: Port, gateway: Port, network: str) -> None:
        index = host.indices[port.interface]
        host.channel.request(rtnetlink.set_route(network, gateway.address, index))

    client = hosts[topology.CLIENT]
    _route_client(client, path)
    for rule in (
        rtnetlink.add_rule_by_source(path.client_network, path.table, path.table),
        rtnetlink.add_rule_by_device(path.device, path.table, path.table + 100),
    ):
        client.channel.request(rule)
    for access in path.accesses:
        for address in (SERVER_ADDRESS, path.server.address):
            add(hosts[access.node], access.up, access.core, f"{address}/32")
    add(hosts[path.core], path.core_up, path.server, f"{SERVER_ADDRESS}/32")
    add(hosts[path.core], path.accesses[0].core, path.accesses[0].up, path.client_network)
    _route_server(hosts[topology.SERVER], path)


@contextlib.contextmanager
def built(
    scenario: Scenario,
    states: dict[str, LinkState],
    seed: int,
    slack_s: float,
    first: str | None = None,
) -> Iterator[Lab]:
    """A lab for `scenario` with its links in `states`; gone when the block ends. What names no link
    takes the one called `first` (`topology.link_paths`).

    The randomness of losses and jitter comes from `seed`; `slack_s` is how late the clock's timers
    may come without costing rate.
    """
    paths = topology.link_paths(scenario.links, first)
    with contextlib.ExitStack() as stack:
        hosts: dict[str, Host] = {}
        middle = [node for path in paths.values() for node in path.nodes]
        for name in (topology.CLIENT, *middle, topology.SERVER):
            host = start_host(name, Router if name in middle else EndHost)
            stack.callback(host.node.terminate)
            hosts[name] = host
        client, server = hosts[topology.CLIENT], hosts[topology.SERVER]
        _skip_indices(client)
        for host in (client, server):
            write_sysctls(host.node.namespace, scenario.tcp.sysctls())
        server.channel.request(rtnetlink.add_address(LOOPBACK, SERVER_ADDRESS, 32))
        links = {}
        for name, settings in scenario.links.items():
            path = paths[name]
            for one, two in path.cables:
                connect(hosts, one, two)
            if path.accesses[0].air is not None:
                _join_air(hosts, path)
            _route(hosts, path)
            links[name] = ShapedLink(
                path,
                hosts,
                states[name],
                settings,
                seed,
                slack_s,
            )
        yield Lab(hosts, links)
