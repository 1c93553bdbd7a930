"""Ports of the loopback device for what a test starts and tells where to listen."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000


def free_ports(count: int) -> int:
    """The first of so many ports of the loopback device, one after the other, that nobody has.

    They are below those from which the kernel takes one for a connection that anybody opens: such a
    connection cannot take one before the program listens that the ports are for.
    """
    end = int(_EPHEMERAL.read_text().split()[0])
    while True:
        first = random.SystemRandom().randrange(_LOWEST, end - count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def free_port() -> int:
    """A port of the loopback device that nobody has."""
    return free_ports(1)
