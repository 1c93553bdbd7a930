"""Collects the versions of everything that figures depend on, for the manifest of a run."""

from __future__ import annotations

import functools
import hashlib
import platform
from pathlib import Path

from linklab.core.installed import debian_packages, said
from linklab.core.paths import DATA, MULTILINK
from linklab.core.version import released
from linklab.places.guest import image, kernel, locked

_PACKAGES = ("h2o", "mininet", "iproute2", "linux-source-7.2")
_PYTHON = "python3.11"


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unknown"


@functools.cache
def versions(place: str = "guest") -> dict[str, str]:
    """Returns versions by name of what runs in `guest` or on `host`; `unknown` if it cannot tell."""
    found = {
        "linklab": released() or "checkout",
        "revision": said(["git", "-C", str(DATA), "describe", "--always", "--dirty"]) or "unknown",
        "multilink": said([str(MULTILINK), "version"]) or "unknown",
        "multilink_sha256": _sha256(MULTILINK),
        "host_kernel": platform.release(),
        "guest_image": guest_image.name if (guest_image := image.cached("guest")) else "none",
        "guest_kernel": guest.name if (guest := kernel.cached()) else "none",
    }
    if place == "guest":
        own = {name: locked.version(name) or "unknown" for name in _PACKAGES}
        return found | own | {"python": locked.version(_PYTHON) or "unknown"}
    found["python"] = platform.python_version()
    installed = debian_packages(_PACKAGES)
    return found | {package: installed.get(package, "unknown") for package in _PACKAGES}
