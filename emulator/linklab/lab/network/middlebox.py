"""Applies a link's impairments on its middlebox, between the link's core and the server."""

from __future__ import annotations

from collections.abc import Mapping

from linklab.core.impairments import NO_IMPAIRMENTS, Impairments
from linklab.core.link_state import DIRECTIONS, Direction, LinkState
from linklab.lab.network.connection_faults import ConnectionFaults
from linklab.lab.network.hosts import Host
from linklab.lab.network.nat import Nat
from linklab.lab.network.routes import route_middlebox
from linklab.lab.network.topology import SERVER, LinkPath, Port
from linklab.lab.shaping.impaired_path import ImpairedPath
from linklab.models.delay_tables import DelayTable
from linklab.models.impairments import NAT_TCP_S, NAT_UDP_S
from linklab.models.seeds import seed_for


class Impairer:
    """Holds the impairments of both directions. A direction's are on the port where its packets leave
    the middlebox.

    Their qdiscs are there from the start if the scenario has impairments of this link. Otherwise they
    come with a direction's first impairment.
    """

    def __init__(
        self,
        path: LinkPath,
        hosts: Mapping[str, Host],
        state: LinkState,
        tables: Mapping[str, DelayTable],
        seed: int,
        server_tcp: dict[str, str],
        *,
        is_impaired: bool,
    ) -> None:
        assert path.middlebox is not None
        self._path, self._host = path, hosts[path.middlebox.node]
        self._hosts, self._server_tcp = hosts, server_tcp
        self._faults: ConnectionFaults | None = None
        self._serves = False
        self._ports: dict[Direction, Port] = {"down": path.middlebox.down, "up": path.middlebox.up}
        self._tables, self._seed, self._is_impaired = tables, seed, is_impaired
        self._paths: dict[Direction, ImpairedPath] = {}
        self._server, self._nat_seed = hosts[SERVER], seed_for(seed, path.name, "impair", "nat")
        self._nat: Nat | None = None
        self._idle_s = (0.0, 0.0)
        self._mtus_bytes: dict[Direction, int | None] = dict.fromkeys(DIRECTIONS)
        self.begin(state)

    def begin(self, state: LinkState) -> None:
        """Sets the scenario's first impairments, with their first random numbers. A NAT stays."""
        for path in self._paths.values():
            path.remove()
        self._paths = {}
        if self._is_impaired:
            for direction in DIRECTIONS:
                self._impair(direction, state.impairments(direction))
        self.apply(state)

    @property
    def has_nat(self) -> bool:
        return self._nat is not None

    def apply(self, state: LinkState) -> None:
        """Sets the impairments of both directions that differ from the present ones."""
        for direction in DIRECTIONS:
            impairments = state.impairments(direction)
            if direction in self._paths:
                self._paths[direction].set(impairments)
            elif impairments != NO_IMPAIRMENTS:
                self._impair(direction, NO_IMPAIRMENTS)  # If a filter fails, the path is there.
                self._paths[direction].set(impairments)
            mtu_bytes = None if impairments.black_hole else impairments.mtu_bytes or None
            if mtu_bytes != self._mtus_bytes[direction]:
                route_middlebox(self._host, self._path, direction, mtu_bytes)
                self._mtus_bytes[direction] = mtu_bytes
        self._translate(state.impairments("up"))
        if self._faults is not None:
            self._faults.apply(state)
        elif self._serves and any(state.impairments(one).breaks_connections for one in DIRECTIONS):
            self.serve(state, breaks=True)

    def serve(self, state: LinkState, *, breaks: bool) -> None:
        """Lets connections have faults, now that the server listens. If it `breaks` any, its relay starts
        at once, and else with the first fault. Only the lab's end ends the relay."""
        self._serves = True
        if breaks:
            self._faults = ConnectionFaults(self._path, self._hosts, self._server_tcp, state)

    def _impair(self, direction: Direction, impairments: Impairments) -> None:
        self._paths[direction] = ImpairedPath(
            self._host.channel,
            self._host.indices[self._ports[direction].interface],
            impairments,
            self._tables,
            seed_for(self._seed, self._path.name, "impair", direction),
        )

    def _translate(self, uplink: Impairments) -> None:
        """Starts a NAT, or changes its idle times. Only the lab's end ends a NAT."""
        if not (uplink.nat_udp_s or uplink.nat_tcp_s):
            return
        idle_s = (uplink.nat_udp_s or NAT_UDP_S, uplink.nat_tcp_s or NAT_TCP_S)
        if self._nat is None:
            self._nat = Nat(self._path, self._host, self._server, *idle_s, self._nat_seed)
        elif idle_s != self._idle_s:
            self._nat.set(*idle_s)
        self._idle_s = idle_s

    def close(self) -> None:
        """Ends the processes of the NAT and of connection faults, if there are any."""
        if self._nat is not None:
            self._nat.close()
        if self._faults is not None:
            self._faults.close()

    def lost_packets(self, direction: Direction) -> int:
        """Returns the number of packets that a direction's impairments have lost."""
        path = self._paths.get(direction)
        lost_packets = 0 if path is None else path.lost_packets()
        return lost_packets + (0 if self._nat is None else self._nat.lost_packets(direction))
