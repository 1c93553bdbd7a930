"""Applies the state of one link to the kernel: queues, delays, carrier, access point."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace

from msgspec import UNSET

from linklab.core.ip_family import in_family, in_url
from linklab.core.link_state import DIRECTIONS, Direction, LinkState
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import NetlinkError
from linklab.lab.kernel.offload import CHECKSUMS, switch_off
from linklab.lab.network.access_points import set_attached
from linklab.lab.network.cables import add_address, add_neighbour, delete_address
from linklab.lab.network.hosts import Host
from linklab.lab.network.middlebox import Impairer
from linklab.lab.network.routes import add_route, route_host
from linklab.lab.network.topology import FORMER, LEASES, Access, LinkPath, Port
from linklab.lab.shaping import filters, tc
from linklab.lab.shaping.delay import Netem, transit
from linklab.lab.shaping.netem import Settings
from linklab.lab.shaping.rate_queue import LinkQueue, RateQueue, rate_queue
from linklab.lab.shaping.tc import NO_COUNTERS, ROOT, Counters
from linklab.models.delay_tables import DelayTable
from linklab.models.seeds import seed_for
from linklab.queues.registry import Queue
from linklab.scenario import LinkSettings


class _Leg:
    """The queues of one access node, and the downlink delay of the core's port towards it."""

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
        self._node, self._has_filters = hosts[access.node], False

        def built(port: Port, rate_bps: int, queue: Queue) -> RateQueue:
            host = hosts[port.node]
            index = host.indices[port.interface]
            assert queue.size_bytes is not None
            return rate_queue(
                host.channel, index, rate_bps, queue.size_bytes, queue.discipline, slack_s
            )

        self.queues = {
            "down": built(access.down, state.down_rate_bps, settings.queue_down),
            "up": built(access.up, state.up_rate_bps, settings.queue_up),
        }
        core = hosts[access.core.node]
        self.delay = Netem(
            core.channel, core.indices[access.core.interface], _transit(state, "down"), seed
        )

    def apply(self, state: LinkState, *, is_attached: bool) -> None:
        """Sets rates and delay that differ from the present ones.

        Shuts a queue while the client is not attached or the link loses every packet.
        """
        rates = {"down": state.down_rate_bps, "up": state.up_rate_bps}
        held = {"down": state.hold_down, "up": state.hold_up}
        for direction, queue in self.queues.items():
            is_shut = not is_attached or state.loses_all(direction)
            queue.resize(None if state.queue_bytes is UNSET else state.queue_bytes)
            queue.set(rates[direction], is_held=held[direction], is_shut=is_shut)
        self.delay.set(_transit(state, "down"))

    def set_dead_end(self, *, dead: bool) -> None:
        """Drops downlink packets where they arrive, and counts them. It is for a node whose own
        interface takes the carrier from the client: there the node has neither route nor queue.

        On a kernel without filters the node drops them uncounted.
        """
        if self.access.air is not None:
            return
        index = self._node.indices[self.access.up.interface]
        messages = [filters.drop_arriving(index) if dead else filters.pass_arriving(index)]
        if not self._has_filters:
            messages.insert(0, filters.add_clsact(index))
        try:
            for message in messages:
                self._node.channel.request(message)
            self._has_filters = True
        except NetlinkError as error:
            if error.errno not in (errno.ENOENT, errno.EEXIST):
                raise

    def remove(self) -> None:
        """Removes the qdiscs. What they hold is lost."""
        self.delay.remove()
        for port in (self.access.down, self.access.up):
            self._node.channel.request(tc.delete(self._node.indices[port.interface], ROOT))
        if self._has_filters:
            index = self._node.indices[self.access.up.interface]
            self._node.channel.request(filters.delete_clsact(index))

    def lost_packets(self) -> int:
        """Returns the downlink packets that were lost before they reached the queue."""
        lost_packets = self.delay.counters().dropped_packets
        if self._has_filters:
            get = tc.get_qdisc(self._node.indices[self.access.up.interface], filters.HANDLE)
            lost_packets += tc.counters(self._node.channel.request(get)).dropped_packets
        return lost_packets


def _transit(state: LinkState, direction: str) -> Settings:
    """Returns delay, jitter and loss of a direction. Only the downlink loses at random."""
    if direction == "up":
        return transit(state.delay_s, state.jitter_s)
    return transit(state.delay_s, state.jitter_s, state.loss_ratio, state.loss_burst_packets)


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
        tables: Mapping[str, DelayTable],
        server_tcp: dict[str, str],
        *,
        is_impaired: bool = False,
    ) -> None:
        self.path = path
        self._hosts, self._settings, self._seed, self._slack_s = hosts, settings, seed, slack_s
        self._roams = len(path.accesses) > 1
        self._hosts_lose = False
        self._earlier: dict[str, Counters] = dict.fromkeys(DIRECTIONS, NO_COUNTERS)
        self._own_earlier: dict[str, Counter[str]] = {one: Counter() for one in DIRECTIONS}
        self._impairer: Impairer | None = None
        self._build(state)
        if path.middlebox is not None:
            self._impairer = Impairer(
                path, hosts, state, tables, seed, server_tcp, is_impaired=is_impaired
            )
        self._begin(state)

    def _build(self, state: LinkState) -> None:
        path, seed = self.path, self._seed
        self._legs = {}
        for number, access in enumerate(path.accesses):
            names = () if number == 0 else (access.node,)
            self._legs[access.node] = _Leg(
                access,
                self._hosts,
                state,
                self._settings,
                seed_for(seed, path.name, "down", *names),
                self._slack_s,
            )
        self._leg = next(iter(self._legs.values()))
        core = self._hosts[path.core]
        self._up_delay = Netem(
            core.channel,
            core.indices[path.core_up.interface],
            _transit(state, "up"),
            seed_for(seed, path.name, "up"),
        )

    def _begin(self, state: LinkState) -> None:
        """Puts new qdiscs into their first state. The link has its carrier and its first address."""
        self.state = replace(state, up=True, lease=0, access_point="")
        for leg in self._legs.values():
            set_attached(self._hosts, leg.access, attached=leg is self._leg)
            leg.apply(state, is_attached=not self._roams)
        self.apply(state)

    def begin_anew(self, state: LinkState) -> str:
        """Puts the link into the scenario's first state, with empty queues and the first random
        numbers. Counters go on. Returns what cannot be set back, or ""."""
        first = next(iter(self._legs)) if self._roams else state.access_point
        self.apply(replace(state, up=True, lease=0, access_point=first))
        before = self.counters()
        self._own_earlier = {one: Counter(self.own_counters(one)) for one in DIRECTIONS}
        self._up_delay.remove()
        for leg in self._legs.values():
            leg.remove()
        self._build(state)
        if self._impairer is not None:
            self._impairer.begin(state)
        self._begin(state)
        self._earlier = dict.fromkeys(DIRECTIONS, NO_COUNTERS)
        for direction, (queue, lost_packets) in self.counters().items():
            earlier, earlier_lost_packets = before[direction]
            self._earlier[direction] = Counters(
                earlier.sent_bytes - queue.sent_bytes,
                earlier.sent_packets - queue.sent_packets,
                earlier.dropped_packets - queue.dropped_packets,
                queue_bytes=0,
                queue_packets=0,
                lost_packets=earlier_lost_packets - lost_packets,
            )
        has_nat = self._impairer is not None and self._impairer.has_nat
        return f"{self.path.name}'s NAT keeps its flows" if has_nat else ""

    def apply(self, state: LinkState) -> None:
        """Puts the link into `state`. Sends the kernel only what differs from the present state.

        A carrier goes before the new rate and delay are set, and comes after. Packets are lost in shut
        queues, which count them. So the client reaches an access point also between two.
        """
        before, left = self.state, self._leg
        if before.up and not state.up:
            left.apply(before, is_attached=False)
            self._set_carrier(up=False)
        self._leg = self._legs.get(state.access_point, left)
        if self._leg is not left:
            set_attached(self._hosts, left.access, attached=False)
            left.apply(before, is_attached=False)
        is_attached = not self._roams or state.access_point in self._legs
        self._leg.apply(state, is_attached=is_attached)
        self._up_delay.set(_transit(state, "up"))
        if self._impairer is not None:
            self._impairer.apply(state)
        if self._leg is not left:
            access, core = self._leg.access, self._hosts[self.path.core]
            add_route(core, access.core, access.up, self.path.client_network)
            set_attached(self._hosts, self._leg.access, attached=True)
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
        if state.up and not before.up:
            self._leg.set_dead_end(dead=False)
        self.state = state

    @property
    def shaper(self) -> str:
        """What holds the rates: "link", exact for each packet, or "hfsc"."""
        return self._leg.queues["down"].shaper

    def follow(self, states: Sequence[tuple[int, LinkState]]) -> None:
        """Lets the kernel put the link into states that differ only in their pace.

        Each has its time in ns of the monotonic clock. The next call of `apply` has to come later.
        Only the guest's kernel can do it.
        """
        for direction, queue in self._leg.queues.items():
            assert isinstance(queue, LinkQueue)
            queue.follow([(at_ns, state.sent_bps(direction)) for at_ns, state in states])

    def serve(self, *, breaks: bool) -> None:
        """Lets connections have faults, now that the server listens (`Impairer.serve`)."""
        if self._impairer is not None:
            self._impairer.serve(self.state, breaks=breaks)

    def close(self) -> None:
        if self._impairer is not None:
            self._impairer.close()

    def _set_carrier(self, *, up: bool) -> None:
        self._hosts_lose = True
        if not up:
            self._leg.set_dead_end(dead=True)
        for port in self.path.carriers:
            host = self._hosts[port.node]
            host.channel.request(rtnetlink.set_up(host.indices[port.interface], up=up))

    def fill_checksums(self) -> None:
        """Makes packets on the client's device carry checksums, as on a wire.

        By default the kernel leaves them out between the lab's hosts.
        """
        for port in (self.path.client, self.path.carrier):
            with inside(self._hosts[port.node].node.namespace):
                switch_off(port.interface, CHECKSUMS)

    def _add_client_neighbour(self, lease: int) -> None:
        access, path = self._leg.access, self.path
        host = self._hosts[access.node]
        for former in range(max(0, lease - LEASES + 1), lease):
            add_neighbour(host, access.down, FORMER, path.lease(former))
        add_neighbour(host, access.down, path.client, path.lease(lease))

    def _renumber(self, old: int, new: int) -> None:
        """Gives the client another address and aborts its old sockets, as Android does.

        Without any address its device forgets routes and neighbours.
        """
        path, client = self.path, self._hosts[self.path.client.node]
        for family in path.families:
            delete_address(client, path.client, path.lease(old), family)
            add_address(client, path.client, path.lease(new), family)
        add_neighbour(client, path.client, path.accesses[0].down)
        route_host(client, path)
        for family in path.families:
            client.run(["ss", "--kill", "--tcp", "src", in_url(in_family(path.lease(old), family))])

    def own_counters(self, direction: str) -> Mapping[str, int]:
        """Returns the counters of a direction's queue discipline, summed over all access points."""
        counted = Counter(self._own_earlier[direction])
        for leg in self._legs.values():
            counted.update(leg.queues[direction].own_counters())
        return counted

    def sojourns(self, direction: str) -> list[list[int]] | None:
        """Returns how many packets waited how long in a direction, over all access points, as
        `link_qdisc.sojourns`."""
        found = [leg.queues[direction].sojourns() for leg in self._legs.values()]
        known = [one for one in found if one is not None]
        if not known:
            return None
        return [
            [sum(counts) for counts in zip(*kind, strict=True)] for kind in zip(*known, strict=True)
        ]

    def counters(self) -> dict[Direction, tuple[Counters, int]]:
        """Returns each direction's counters of the rate queues, and its lost packets."""
        down, up = self.queue_counters("down"), self.queue_counters("up")
        lost_packets = {"down": down.lost_packets, "up": up.lost_packets}
        lost_packets["down"] += sum(leg.lost_packets() for leg in self._legs.values())
        if self._hosts_lose:
            found = [self._hosts[port.node].interface(port.interface) for port in self.path.hosts]
            lost_packets["up"] += sum(one.unsent_packets for one in found)
            lost_packets["down"] += sum(one.foreign_packets for one in found)
        if self._impairer is not None:
            for direction in DIRECTIONS:
                lost_packets[direction] += self._impairer.lost_packets(direction)
        return {"down": (down, lost_packets["down"]), "up": (up, lost_packets["up"])}

    def queue_counters(self, direction: str) -> Counters:
        """Returns the counters of a direction's rate queues, summed over all access points."""
        counted = [leg.queues[direction].counters() for leg in self._legs.values()]
        counted.append(self._earlier[direction])
        return Counters(*(sum(values) for values in zip(*map(astuple, counted), strict=True)))
