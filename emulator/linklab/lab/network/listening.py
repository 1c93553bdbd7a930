"""Reads the sockets of a network namespace (proc_pid_net(5)), and finds those that listen."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linklab.core.ip_family import IPV4, IPV6, Families, in_family, in_url
from linklab.lab.network.topology import EVERY_ADDRESS, SERVER_ADDRESS

_LISTENS = {"tcp": "0A", "udp": "07"}  # include/net/tcp_states.h: TCP_LISTEN; UDP has TCP_CLOSE.


@dataclass(frozen=True, order=True)
class Listening:
    """Describes a listening socket: `tcp` or `udp`, its address and port."""

    protocol: str
    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.protocol} {in_url(self.address)}:{self.port}"

    @property
    def families(self) -> Families:
        """The families by which clients of the lab can reach it: it has all addresses of a family,
        or the server's. What has all of IPv6 also takes IPv4, unless it was told not to."""
        if self.address == EVERY_ADDRESS:
            return (IPV4, IPV6)
        if self.address in ("0.0.0.0", SERVER_ADDRESS, f"::ffff:{SERVER_ADDRESS}"):
            return (IPV4,)
        return (IPV6,) if self.address == in_family(SERVER_ADDRESS, IPV6) else ()


def sockets(text: str) -> Iterator[tuple[str, str, int]]:
    """Yields the sockets in a table such as `net/tcp6`: state, local address and port."""
    for line in text.splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        address, _, port = local.partition(":")
        yield state, _address(address), int(port, 16)


def listening(text: str, protocol: str) -> list[Listening]:
    """Returns the listening sockets in a table."""
    return [
        Listening(protocol, address, port)
        for state, address, port in sockets(text)
        if state == _LISTENS[protocol]
    ]


def _address(words: str) -> str:
    """Parses an address as the kernel prints it: words of 32 bits in this machine's byte order."""
    numbers = [int(words[at : at + 8], 16) for at in range(0, len(words), 8)]
    packed = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
    if len(packed) == 4:
        return str(ipaddress.IPv4Address(packed))
    return socket.inet_ntop(socket.AF_INET6, packed)


def all_listening(process: int | str = "thread-self") -> list[Listening]:
    """Returns the listening sockets in the network namespace of a process, or in this thread's."""
    found = []
    for protocol in _LISTENS:
        for table in (protocol, f"{protocol}6"):
            path = Path(f"/proc/{process}/net/{table}")
            if path.exists():
                found += listening(path.read_text(), protocol)
    return sorted(found)
