"""Versions of everything that a figure depends on, for the manifest of a run."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import subprocess
from pathlib import Path

from linklab.guest import kernel
from linklab.paths import DATA, INSTALLED, MULTILINK, REPOSITORY

_PACKAGES = ("h2o", "mininet", "iproute2", "linux-source-6.12")


def _words(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unknown"


def released() -> str | None:
    """linklab's version where it is the wheel's or an image's (its file VERSION), not a
    checkout's."""
    if INSTALLED:
        return importlib.metadata.version("linklab")
    try:
        return (REPOSITORY / "VERSION").read_text(encoding="ascii").strip()
    except OSError:
        return None


@functools.cache
def own_version() -> str:
    """linklab's version, in a checkout after its git tags; `0+unknown` where git cannot tell."""
    version = released()
    if version is not None:
        return version
    try:
        import setuptools_scm  # Slow to load, and needed in a checkout only.

        return setuptools_scm.get_version(root=str(REPOSITORY))
    except (ImportError, LookupError):
        return "0+unknown"


@functools.cache
def versions() -> dict[str, str]:
    """Name → version; `unknown` where a part cannot be asked."""
    found = {
        "linklab": released() or "checkout",
        "revision": _words(["git", "-C", str(DATA), "describe", "--always", "--dirty"]),
        "multilink": _words([str(MULTILINK), "version"]),
        "multilink_sha256": _sha256(MULTILINK),
        "host_kernel": platform.release(),
        "guest_kernel": guest.name if (guest := kernel.cached()) else "none",
        "python": platform.python_version(),
        "pyroute2": importlib.metadata.version("pyroute2"),
    }
    form = "${Package} ${Version}\n"  # Empty for a package that was removed.
    lines = (_words(["dpkg-query", "-W", "-f", form, package]) for package in _PACKAGES)
    installed = dict(line.split(" ", 1) for line in lines if " " in line)
    return found | {package: installed.get(package, "unknown") for package in _PACKAGES}
