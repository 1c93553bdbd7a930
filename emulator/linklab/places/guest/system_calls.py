"""Tells how User Mode Linux can catch the system calls of the guest's programs here.

It catches them by seccomp filters or by ptrace. Containers and hardened systems refuse one or both.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import subprocess
import sys

from linklab.places.guest import confinement
from linklab.places.guest.ending import GuestError

_SECCOMP = 317
"""The number of seccomp(2) on x86-64. The C library has no function for it."""
_SET_MODE_FILTER = 1
_TRACE_ME = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"

_libc = ctypes.CDLL(None, use_errno=True)


def allows_filters() -> bool:
    """Tells whether a process may install a seccomp filter. It is tried with a filter that is none."""
    _libc.syscall(_SECCOMP, _SET_MODE_FILTER, 0, None)
    return ctypes.get_errno() == errno.EFAULT


@functools.cache
def allows_ptrace() -> bool:
    """Tells whether a process may trace another. It is tried once."""
    words = [sys.executable, "-I", "-S", "-c", _TRACE_ME]
    return subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode == 0


def obstacle() -> str | None:
    """Returns why User Mode Linux cannot run here, or None. For x86-64."""
    if allows_filters() or allows_ptrace():
        return None
    return "User Mode Linux needs seccomp filters or ptrace, this machine refuses both"


def chosen() -> str:
    """Returns how the guest's programs call its kernel: `auto` or `off`, for UML's `seccomp=`.

    `auto` uses seccomp filters if the host allows them, which is faster. `off` uses ptrace. The
    runs are the same to the byte. With seccomp a program in the guest can write the guest's kernel,
    which is a program of the user's. So an unconfined guest uses ptrace. Raises GuestError if this
    machine refuses it.
    """
    if confinement.fence().name != "none":
        return "auto"
    if allows_ptrace():
        return "off"
    raise GuestError(
        "a guest that is not confined needs ptrace, which this machine refuses; "
        "--processor emulated needs none"
    )
