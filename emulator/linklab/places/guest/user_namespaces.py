"""Tells which of this machine's settings refuse user namespaces, and what allows them.

A guest's confinement and the making of its image use them (user_namespaces(7)). Debian, Ubuntu and
hardened systems each have a setting of their own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

_SETTINGS: tuple[tuple[str, Callable[[int], bool], int], ...] = (
    # Ubuntu 23.10 and later: a namespace can be made, but AppArmor refuses all rights inside it.
    ("kernel.apparmor_restrict_unprivileged_userns", lambda value: value != 0, 0),
    # Debian before 11, and some systems until today.
    ("kernel.unprivileged_userns_clone", lambda value: value == 0, 1),
    # Linux itself.
    ("user.max_user_namespaces", lambda value: value == 0, 10_000),
)
"""A setting (sysctl(8)), whether a value of it refuses, and a value that allows."""


def remedy(settings: Path = Path("/proc/sys")) -> str:
    """Returns the command that allows user namespaces; empty if no setting refuses them."""
    changes = []
    for name, refuses, allowed in _SETTINGS:
        try:
            value = int((settings / name.replace(".", "/")).read_text())
        except (OSError, ValueError):
            continue  # This kernel does not have it.
        if refuses(value):
            changes.append(f"{name}={allowed}")
    return f"sysctl {' '.join(changes)}" if changes else ""


def refused(words: Sequence[str], own_proc: Path = Path("/proc/self")) -> str | None:
    """Tries a command in namespaces that does nothing. Returns why it fails, or None.

    bwrap(1) looks for its child in /proc. If that is another PID namespace's, as after
    unshare(1) without `--mount-proc`, it ends and leaves a child that waits without end.
    """
    if str(own_proc.readlink()) != str(os.getpid()):
        return "/proc is another PID namespace's (unshare: --mount-proc)"
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return None if done.returncode == 0 else said[-1]
