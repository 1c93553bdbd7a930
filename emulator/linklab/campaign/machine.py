"""What must be the same on every machine of a campaign: all that figures depend on.

The submitting machine states it, each worker is asked for it before it gets runs, and every run
checks it again, because a checkout may change under a worker.
"""

from __future__ import annotations

import functools
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


@functools.cache
def facts() -> dict[str, str]:
    """Name → version or hash, of this machine."""
    known = versions()
    return {
        "linklab (SHA-256)": _sources(),
        **{_TITLES[name]: known[name] for name in _SAME},
    }


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What is not as it has to be, in words; nothing where all is. Pure."""
    return [
        f"{name} is {_short(found.get(name, 'none'))} instead of {_short(value)}"
        for name, value in wanted.items()
        if found.get(name) != value
    ]


def _short(value: str) -> str:
    """A hash as people compare it."""
    is_hash = len(value) == 64 and all(letter in "0123456789abcdef" for letter in value)
    return value[:12] if is_hash else value


def _sources() -> str:
    """A hash of the package as it runs, and of H2O's configuration; tests do not count."""
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
"""What is in the package and reaches no run."""
