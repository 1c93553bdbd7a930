"""Finds free ports of the loopback device for programs that a test starts."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000


def free_ports(count: int) -> int:
    """Returns the first of `count` consecutive free ports of the loopback device. They are below
    the ports that the kernel gives to outgoing connections. So no such connection can take one
    before the program listens."""
    end = int(_EPHEMERAL.read_text().split()[0])
    while True:
        first = random.SystemRandom().randrange(_LOWEST, end - count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def free_port() -> int:
    """Returns a free port of the loopback device."""
    return free_ports(1)
