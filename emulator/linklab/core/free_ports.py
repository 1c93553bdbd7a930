"""Finds free ports of this machine, and holds them."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
from pathlib import Path
from typing import Final

_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST: Final = 10_000
_TRIES: Final = 1000
_BACKLOG: Final = 1024


def free_ports(count: int) -> int:
    """Returns the first of `count` consecutive free ports of the loopback device. Raises OSError if
    none are found.

    Any other program may take one of them before the caller does. Only tests can live with that.
    """
    held = held_ports("127.0.0.1", 0, count)
    first = first_of(held)
    for one in held:
        one.close()
    return first


def first_of(held: tuple[socket.socket, ...]) -> int:
    """Returns the port of the first socket."""
    return int(held[0].getsockname()[1])


def held_ports(host: str, first: int, count: int) -> tuple[socket.socket, ...]:
    """Returns sockets that listen on consecutive ports of an IPv4 address. With a `first` of 0 they
    are ports that are free. Raises OSError, whose `filename` is the port that cannot be had.

    Nobody else can take a port as long as its socket is open. Free ports are below those that the
    kernel gives to outgoing connections. The guest uses the same numbers.
    """
    if first != 0:
        return _listening(host, first, count)
    end = int(_EPHEMERAL.read_text().split()[0])
    last = end if end - count > _LOWEST else 65_536
    for _ in range(_TRIES):
        drawn = random.SystemRandom().randrange(_LOWEST, last - count)
        try:
            return _listening(host, drawn, count)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"no {count} consecutive ports of {host} are free")


def _listening(host: str, first: int, count: int) -> tuple[socket.socket, ...]:
    with contextlib.ExitStack() as stack:
        held = []
        for port in range(first, first + count):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind((host, port))
                # At once: until it listens, others with SO_REUSEADDR can bind the port too.
                one.listen(_BACKLOG)
            except OverflowError as error:
                raise OSError(errno.EINVAL, str(error), port) from None
            except OSError as error:
                raise OSError(error.errno, error.strerror, port) from None
            held.append(one)
        stack.pop_all()
    return tuple(held)
