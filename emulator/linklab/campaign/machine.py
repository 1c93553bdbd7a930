"""Compares what must be the same on every machine of a campaign: all that figures depend on.

The submitting machine states it. Each worker reports its own before it gets runs. Every run checks
again, because a worker's checkout may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from linklab.core.paths import PYTHON_PATH, SERVER_CONFIGURATION
from linklab.places.versions import versions

_SAME = ("multilink_sha256", "guest_kernel", "guest_image")
_TITLES = {
    "multilink_sha256": "multilink (SHA-256)",
    "guest_kernel": "guest kernel",
    "guest_image": "guest image",
}


def facts() -> dict[str, str]:
    """Returns versions and hashes of this machine as it is now, by name."""
    versions.cache_clear()
    known = versions()
    return {
        "linklab (SHA-256)": _sources(),
        **{_TITLES[name]: known[name] for name in _SAME},
    }


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Lists the differences in words; empty if there is none. Pure."""
    return [
        f"{name} is {_short(found.get(name, 'none'))} instead of {_short(value)}"
        for name, value in wanted.items()
        if found.get(name) != value
    ]


def _short(value: str) -> str:
    """Returns the first characters of a hash, for people."""
    is_hash = len(value) == 64 and all(letter in "0123456789abcdef" for letter in value)
    return value[:12] if is_hash else value


def _sources() -> str:
    """Returns a hash of the package without tests, and of H2O's configuration."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*")):
        named = path.relative_to(PYTHON_PATH)
        is_source = path.suffix in (".py", ".sh", ".config", ".patch")
        is_test = path.name.endswith(("_test.py", "conftest.py"))
        if is_source and not is_test and named.parts[1] not in _APART:
            digest.update(f"{named}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    digest.update(hashlib.sha256(SERVER_CONFIGURATION.read_bytes()).digest())
    return digest.hexdigest()


_APART = ("_version.py", "data", "regression")
"""Parts of the package that do not change a run."""
