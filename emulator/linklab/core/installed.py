"""What is installed on this machine, as its programs say."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence


def said(argv: Sequence[str]) -> str | None:
    """What a program prints, without white space around it; None where it is not there, or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def debian_packages(names: Iterable[str]) -> dict[str, str]:
    """The versions of those of the named Debian packages that are installed."""
    form = "${Package} ${Version}\n"  # No version for one that was removed.
    found: dict[str, str] = {}
    for name in names:  # Each alone: one that dpkg does not know fails all.
        for line in (said(["dpkg-query", "-W", "-f", form, name]) or "").splitlines():
            package, _, version = line.partition(" ")
            if version:
                found.setdefault(package, version)  # Again for each architecture.
    return found
