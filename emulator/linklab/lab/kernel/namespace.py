"""Acts inside another network namespace: opens sockets there, and writes sysctls.

A descriptor keeps a namespace alive without any process in it. A socket stays in the namespace in
which it was opened. So a lab opens one socket per node and needs no helper process (Linux
network_namespaces(7)).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_OWN = "/proc/thread-self/ns/net"

_REMEDIES = {
    ("net.ipv4.tcp_congestion_control", errno.EPERM): "; allowed: those in the machine's "
    "net.ipv4.tcp_allowed_congestion_control, to which root may add it, or any in the guest"
}
"""What to do about a sysctl that the kernel refuses with an error (tcp_set_default_congestion_control
in Linux' tcp_cong.c)."""


def _call(name: str, *arguments: int) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def unshare(kinds: int) -> None:
    """Gives the calling thread, and what it starts, new namespaces of these kinds. Raises OSError
    without CAP_SYS_ADMIN."""
    _call("unshare", kinds)


def network_of(pid: int) -> int:
    """Returns a descriptor of a process' network namespace. The caller closes it."""
    return _opened(f"/proc/{pid}/ns/net")


def new_network() -> int:
    """Returns a descriptor of a new network namespace. The namespace ends with its last descriptor,
    socket and process. Raises OSError without CAP_SYS_ADMIN."""
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
    """Moves the calling thread into the descriptor's network namespace during the block.

    Raises OSError without CAP_SYS_ADMIN.
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
                remedy = _REMEDIES.get((name, error.errno or 0), "")
                text = f"sysctl {name}={value}: {error.strerror}{remedy}"
                raise OSError(error.errno, text) from error
