"""Asks this machine's programs for installed versions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence


def said(argv: Sequence[str]) -> str | None:
    """Returns a program's output without surrounding white space; None if it is missing or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def debian_packages(names: Iterable[str]) -> dict[str, str]:
    """Returns the versions of the named Debian packages that are installed."""
    form = "${Package} ${Version}\n"  # A removed package has no version.
    found: dict[str, str] = {}
    for name in names:  # One by one, because an unknown package makes the whole query fail.
        for line in (said(["dpkg-query", "-W", "-f", form, name]) or "").splitlines():
            package, _, version = line.partition(" ")
            if version:
                found.setdefault(package, version)  # There is a line for each architecture.
    return found
