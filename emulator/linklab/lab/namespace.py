"""Acting inside another process' network namespace: netlink sockets and sysctls.

A netlink socket belongs for life to the namespace it was opened in, so a lab
opens one per node and then needs no helper process (Linux network_namespaces(7)).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyroute2 import IPRoute

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """The calling thread is in the network namespace of `pid` within the block.

    Raises OSError when the process is gone or the right (CAP_SYS_ADMIN) is missing.
    """
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(other)
        finally:
            os.close(other)
        try:
            yield
        finally:
            _setns(own)
    finally:
        os.close(own)


def open_netlink(pid: int) -> IPRoute:
    """A netlink socket inside the network namespace of `pid`."""
    with network_of(pid):
        return IPRoute()


def write_sysctls(pid: int, settings: dict[str, str]) -> None:
    """Writes sysctls (`net.ipv4.tcp_rmem` → value) in the namespace of `pid`.

    Raises OSError naming the sysctl that the kernel refused.
    """
    with network_of(pid):
        for name, value in settings.items():
            path = Path("/proc/sys") / name.replace(".", "/")
            try:
                path.write_text(value)
            except OSError as error:
                raise OSError(error.errno, f"sysctl {name}={value}: {error.strerror}") from error
