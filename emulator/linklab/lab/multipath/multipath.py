"""Controls the kernel's Multipath TCP between the lab's end hosts, and records its subflows.

The client's path manager opens subflows from its endpoints, one address per link. The server has
one address in a family, so a full mesh is one subflow per link. The first subflow takes the link of
the client's best default route (`lab/network/routes.py`). If only some links have IPv6, it is one of
these, because IPv6 is preferred (RFC 6724). Then the server tells its IPv4 address (ADD_ADDR).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from linklab.core.ip_family import IPV4, IPV6, in_family
from linklab.core.records import FILES, SubflowRecord, line
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import GENERIC, SOCK_DIAG, Channel, NetlinkError
from linklab.lab.multipath import path_manager, sock_diag
from linklab.lab.multipath.path_manager import Endpoint, Opened
from linklab.lab.multipath.path_use import NO_COUPLING
from linklab.lab.multipath.sock_diag import Carried, Subflow
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.lab import Lab
from linklab.lab.network.topology import SERVER_ADDRESS
from linklab.scenario.tcp import COUPLED_CONTROLS

FILE: Final = "mptcp.json"
"""The file of a run directory with the kernels' settings and counters of Multipath TCP."""

_SYSCTLS: Final = (
    "net/mptcp/scheduler",
    "net/mptcp/available_schedulers",
    "net/mptcp/path_manager",
    "net/mptcp/available_path_managers",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
)


class Multipath:
    """Multipath TCP on both end hosts of a lab. The caller closes it.

    Raises LabError if the kernel has none.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        paths = {name: link.path for name, link in lab.links.items()}
        preferred = {name: path.families[-1] for name, path in paths.items()}
        self._addresses = {
            name: in_family(path.client.address, preferred[name]) for name, path in paths.items()
        }
        self._names = {
            in_family(path.client.address, family): name
            for name, path in paths.items()
            for family in path.families
        }
        self._identifiers = {name: number for number, name in enumerate(lab.links, 1)}
        self._commands = {host.name: _generic(host) for host in (lab.client, lab.server)}
        try:
            found = self._commands[lab.client.name].request(path_manager.find_family())
        except NetlinkError as error:
            for channel in self._commands.values():
                channel.close()
            if error.errno != errno.ENOENT:
                raise
            raise LabError(
                "this kernel has no Multipath TCP (CONFIG_MPTCP); use the guest, whose kernel has"
            ) from error
        self._family = path_manager.family(found)
        most = len(lab.links)
        for channel in self._commands.values():
            limits = path_manager.set_limits(self._family, subflows=most, accepted=most)
            channel.request(limits)
        self._subflow = Endpoint.SUBFLOW
        if {IPV4, IPV6} == set(preferred.values()):
            self._subflow |= Endpoint.FULLMESH
            self._commands[lab.server.name].request(
                path_manager.add_endpoint(self._family, 1, SERVER_ADDRESS, None, Endpoint.SIGNAL)
            )
        with inside(lab.client.node.namespace):
            self._sockets, self._events, self._gone = (
                Channel(SOCK_DIAG),
                Channel(GENERIC),
                Channel(SOCK_DIAG),
            )
        self._left: dict[tuple[str, int], Carried] = {}
        self._events.join(self._family.events)
        for one in lab.families:
            self._gone.join(sock_diag.DESTROYED[one])

    def close(self) -> None:
        """Closes the sockets. Subflows and endpoints stay."""
        for channel in (*self._commands.values(), self._sockets, self._events, self._gone):
            channel.close()

    def use_all(self, *, backups_of: str | None = None) -> None:
        """Makes connections use all links, or the others as backups of one."""
        for link in self._lab.links:
            self.use(link, backup=backups_of is not None and link != backups_of)

    def _client(self, make: Callable[..., bytes], link: str, *more: object) -> None:
        """Sends a message about the client's endpoint of a link."""
        message = make(self._family, self._identifiers[link], self._addresses[link], *more)
        self._commands[self._lab.client.name].request(message)

    def _flags(self, *, backup: bool) -> Endpoint:
        return self._subflow | (Endpoint.BACKUP if backup else Endpoint(0))

    def use(self, link: str, *, backup: bool = False) -> None:
        """Makes connections, including open ones, use a further link."""
        index = self._lab.client.indices[self._lab.links[link].path.device]
        self._client(path_manager.add_endpoint, link, index, self._flags(backup=backup))

    def set_backup(self, link: str, *, backup: bool) -> None:
        """Makes the subflows over a link backups, which carry data only while no other subflow can,
        or regular again. Tells both ends at once (MP_PRIO)."""
        self._client(path_manager.set_flags, link, self._flags(backup=backup))

    def leave(self, link: str) -> None:
        """Closes the subflows over a link and opens no more."""
        # The kernel forgets what the first subflow of a connection carried.
        for one in self.subflows():
            if self.link_of(one.tcp.address) == link:
                self._left[one.tcp.address, one.tcp.port] = one.tcp
        self._client(path_manager.delete_endpoint, link)

    def link_of(self, address: str) -> str:
        """Returns the link of one of the client's addresses, "" for an address leased later."""
        return self._names.get(address, "")

    def subflows(self) -> Iterator[Subflow]:
        for answer in self._connections():
            found = sock_diag.subflow(answer)
            if found is not None:
                yield found

    def _connections(self) -> list[bytes]:
        return [
            answer
            for family in self._lab.families
            for answer in self._sockets.dump(sock_diag.all_connections(family))
        ]

    def write(self, run_dir: Path, t_s: float) -> None:
        """Writes `subflows.jsonl`, the bytes of every subflow at the client's end, and
        `mptcp.json`. It is called once, at the end of a run. Before, the object only receives
        events."""
        there = self._connections()
        alive = {
            (one.tcp.address, one.tcp.port): one for one in map(sock_diag.subflow, there) if one
        }
        # A closed subflow may linger as a plain connection until the peer has acknowledged it.
        gone = self._left | {
            (tcp.address, tcp.port): tcp
            for tcp in map(sock_diag.carried, [*self._gone.heard(), *there])
            if tcp is not None
        }
        with (run_dir / FILES[SubflowRecord]).open("wb") as file:
            for opened in map(path_manager.opened, self._events.heard()):
                if opened is not None:
                    key = opened.address, opened.port
                    file.write(line(self._record(t_s, opened, alive.get(key), gone.get(key))))
        told = {host.name: _kernel_report(host) for host in (self._lab.client, self._lab.server)}
        controls = {one["settings"]["net/ipv4/tcp_congestion_control"] for one in told.values()}
        note = {} if controls <= {*COUPLED_CONTROLS} else {"note": NO_COUPLING}
        text = msgspec.json.format(msgspec.json.encode({**note, **told}), indent=2)
        (run_dir / FILE).write_bytes(text + b"\n")

    def _record(
        self, t_s: float, opened: Opened, alive: Subflow | None, gone: Carried | None
    ) -> SubflowRecord:
        state: Literal["open", "backup", "closed"] = "closed"
        if alive is not None:
            state = "backup" if alive.is_backup else "open"
        record = SubflowRecord(
            t_s=t_s,
            link=self.link_of(opened.address),
            connection=opened.token,
            endpoint=opened.identifier,
            port=opened.port,
            state=state,
        )
        tcp = gone if alive is None else alive.tcp
        if tcp is None:
            return record
        return msgspec.structs.replace(
            record,
            received_bytes=tcp.received_bytes,
            sent_bytes=tcp.acknowledged_bytes,
            retransmitted_segments=tcp.retransmitted_segments,
            rtt_s=tcp.rtt_s,
        )


def _generic(host: Host) -> Channel:
    with inside(host.node.namespace):
        return Channel(GENERIC)


def _kernel_report(host: Host) -> dict[str, Any]:
    """Returns the kernel's settings and counters of Multipath TCP in a host's network namespace."""
    with inside(host.node.namespace):
        settings = {name: Path("/proc/sys", name).read_text().strip() for name in _SYSCTLS}
        counters = Path("/proc/thread-self/net/netstat").read_text()
    return {"settings": settings, "counters": mptcp_counters(counters)}


def mptcp_counters(netstat: str) -> dict[str, int]:
    """Returns the non-zero counters of Multipath TCP in /proc/net/netstat."""
    names, values = (row.split()[1:] for row in netstat.splitlines() if row.startswith("MPTcpExt:"))
    return {name: int(value) for name, value in zip(names, values, strict=True) if int(value)}
