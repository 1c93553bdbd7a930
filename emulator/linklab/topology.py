"""The lab's graph: which nodes and cables there are, and their addresses. Pure.

    client ──wlan0── ap ── isp ──── server          client ─rmnet0─ enb ── epc ──── server

Two middle nodes per link, so that nothing is shaped on an end host and rate and
delay live in separate qdiscs: the access node (ap, enb) holds rate and queue,
the core node (isp, epc) delay, jitter and loss.
"""

from __future__ import annotations

from dataclasses import dataclass

CLIENT = "client"
SERVER = "server"
SERVER_ADDRESS = "10.0.0.1"
SERVER_NAME = "server.linklab"


@dataclass(frozen=True)
class Port:
    """One end of a cable: an interface of a node with its address (IPv4, /24)."""

    node: str
    interface: str
    address: str


@dataclass(frozen=True)
class LinkPath:
    """The three cables that one link is made of, from the client to the server.

    `table` is the client's routing table for traffic that leaves by this link.
    """

    name: str
    device: str
    access: str
    core: str
    table: int
    client: Port
    access_down: Port
    access_up: Port
    core_down: Port
    core_up: Port
    server: Port

    @property
    def cables(self) -> tuple[tuple[Port, Port], ...]:
        """The pairs of ports that are joined, client side first."""
        return (
            (self.client, self.access_down),
            (self.access_up, self.core_down),
            (self.core_up, self.server),
        )


def _link_path(index: int, name: str, device: str, access: str, core: str) -> LinkPath:
    net = f"10.{index}"
    return LinkPath(
        name=name,
        device=device,
        access=access,
        core=core,
        table=100 + index,
        client=Port(CLIENT, device, f"{net}.0.2"),
        access_down=Port(access, f"{access}-{device}", f"{net}.0.1"),
        access_up=Port(access, f"{access}-{core}", f"{net}.1.1"),
        core_down=Port(core, f"{core}-{access}", f"{net}.1.2"),
        core_up=Port(core, f"{core}-server", f"{net}.2.1"),
        server=Port(SERVER, f"server-{core}", f"{net}.2.2"),
    )


LINK_PATHS = {
    path.name: path
    for path in (
        _link_path(1, "wifi", "wlan0", "ap", "isp"),
        _link_path(2, "lte", "rmnet0", "enb", "epc"),
    )
}


def nodes() -> list[str]:
    """All node names, in the order in which a lab creates them."""
    middle = [n for path in LINK_PATHS.values() for n in (path.access, path.core)]
    return [CLIENT, *middle, SERVER]
