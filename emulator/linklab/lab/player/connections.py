"""Reads the open TCP connections of a node of the lab, by link."""

from __future__ import annotations

import ipaddress
import os

_ESTABLISHED = "01"


class OpenConnections:
    """Reads a network namespace's TCP connections repeatedly (proc_pid_net(5))."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.open(f"/proc/{pid}/net/tcp", os.O_RDONLY | os.O_CLOEXEC)

    def of(self, network: str) -> frozenset[int]:
        """Returns the local ports of connections whose local address lies in `network`."""
        inside = ipaddress.IPv4Network(network)
        ports = set()
        for line in self._text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, _, port = local.partition(":")
            if state == _ESTABLISHED:
                octets = bytes.fromhex(address)[::-1]  # Little-endian, as this kernel prints it.
                if ipaddress.IPv4Address(octets) in inside:
                    ports.add(int(port, 16))
        return frozenset(ports)

    def _text(self) -> str:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts).decode("ascii")

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)
