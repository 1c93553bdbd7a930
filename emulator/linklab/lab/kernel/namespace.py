"""Acting inside another network namespace: sockets that belong to it, and sysctls.

A namespace is held by a descriptor; no process need live in it. A socket belongs for life to the
namespace it was opened in, so a lab opens one per node and then needs no helper process (Linux
network_namespaces(7)).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_OWN = "/proc/thread-self/ns/net"


def _call(name: str, *arguments: int) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def unshare(kinds: int) -> None:
    """Gives the calling thread, and what it starts, namespaces of its own of these kinds. Raises
    OSError when the right (CAP_SYS_ADMIN) is missing."""
    _call("unshare", kinds)


def network_of(pid: int) -> int:
    """A descriptor of the network namespace of a process. Close it."""
    return _opened(f"/proc/{pid}/ns/net")


def new_network() -> int:
    """A descriptor of a new network namespace, which goes with its last descriptor, socket and
    process. Raises OSError when the right (CAP_SYS_ADMIN) is missing."""
    own = _opened(_OWN)
    try:
        unshare(CLONE_NEWNET)
        try:
            return _opened(_OWN)
        finally:
            _call("setns", own, CLONE_NEWNET)
    finally:
        os.close(own)


@contextmanager
def inside(namespace: int) -> Iterator[None]:
    """The calling thread is in the network namespace of this descriptor within the block.

    Raises OSError when the right (CAP_SYS_ADMIN) is missing.
    """
    own = _opened(_OWN)
    try:
        _call("setns", namespace, CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", own, CLONE_NEWNET)
    finally:
        os.close(own)


def write_sysctls(namespace: int, settings: dict[str, str]) -> None:
    """Writes sysctls (`net.ipv4.tcp_rmem` → value) in a namespace.

    Raises OSError naming the sysctl that the kernel refused.
    """
    with inside(namespace):
        for name, value in settings.items():
            path = Path("/proc/sys") / name.replace(".", "/")
            try:
                path.write_text(value)
            except OSError as error:
                raise OSError(error.errno, f"sysctl {name}={value}: {error.strerror}") from error
