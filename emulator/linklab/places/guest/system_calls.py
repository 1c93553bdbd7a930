"""Tells how User Mode Linux can catch the system calls of the guest's programs here.

It catches them by seccomp filters or by ptrace. Containers and hardened systems refuse one or both.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import subprocess
import sys

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
