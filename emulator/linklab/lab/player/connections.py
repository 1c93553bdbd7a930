"""Reads the open TCP connections of a node of the lab, by link."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable

from linklab.core.ip_family import IPV4, IPV6, in_family

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
            for line in self._text(self._descriptors[family]).splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                words, _, port = local.partition(":")
                if state == _ESTABLISHED and _address(words) in inside:
                    ports.add(int(port, 16))
        return frozenset(ports)

    def _text(self, descriptor: int) -> str:
        os.lseek(descriptor, 0, os.SEEK_SET)
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts).decode("ascii")

    def close(self) -> None:
        """Closes the files."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)


def _address(words: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parses an address as this kernel prints it: little-endian words of 32 bits."""
    octets = bytes.fromhex(words)
    return ipaddress.ip_address(
        b"".join(octets[at : at + 4][::-1] for at in range(0, len(octets), 4))
    )
