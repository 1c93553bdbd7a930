"""Finds free ports of the loopback device."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST: Final = 10_000
_TRIES: Final = 1000


def free_ports(count: int) -> int:
    """Returns the first of `count` consecutive free ports. Raises OSError if none are found.

    They are below the ports that the kernel gives to outgoing connections. So no such connection
    can take one before a program listens.
    """
    end = int(_EPHEMERAL.read_text().split()[0])
    last = end if end - count > _LOWEST else 65_536
    for _ in range(_TRIES):
        first = random.SystemRandom().randrange(_LOWEST, last - count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError(f"no {count} consecutive ports of 127.0.0.1 are free")
