"""Reads the open TCP connections of a node of the lab, by link."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable

from linklab.core.ip_family import IPV4, IPV6, in_family
from linklab.lab.network.listening import sockets

_ESTABLISHED = "01"
_TABLES = {IPV4: "tcp", IPV6: "tcp6"}


class OpenConnections:
    """Reads a network namespace's TCP connections repeatedly (proc_pid_net(5))."""

    def __init__(self, pid: int, families: Iterable[int]) -> None:
        self._descriptors = {
            family: os.open(f"/proc/{pid}/net/{_TABLES[family]}", os.O_RDONLY | os.O_CLOEXEC)
            for family in families
        }

    def of(self, network: str, families: Iterable[int]) -> frozenset[int]:
        """Returns the local ports of connections whose local address lies in the plan's `network`,
        in these families."""
        ports = set()
        for family in families:
            inside = ipaddress.ip_network(in_family(network, family))
            for state, address, port in sockets(self._text(self._descriptors[family])):
                if state == _ESTABLISHED and ipaddress.ip_address(address) in inside:
                    ports.add(port)
        return frozenset(ports)

    def _text(self, descriptor: int) -> str:
        os.lseek(descriptor, 0, os.SEEK_SET)
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts).decode("ascii")

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
