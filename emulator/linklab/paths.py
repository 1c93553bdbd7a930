"""Where things are: the repository, the cache, and how the guest sees them.

Everything that linklab makes outside a run directory lies under one cache
directory (`LINKLAB_CACHE`, else `$XDG_CACHE_HOME/linklab`, else `~/.cache/linklab`).
"""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROFILES = REPOSITORY / "profiles"
MULTILINK = Path(
    os.environ.get("LINKLAB_MULTILINK") or REPOSITORY / "build" / "multilink"
).resolve()
"""The client that runs; `LINKLAB_MULTILINK` names another build of it."""
SERVER_CONFIGURATION = REPOSITORY / "server" / "h2o.conf"

GUEST_HOST_ROOT = Path("/run/linklab/host")
"""Where the guest mounts the host's root a second time, out of reach of its own tmpfs."""

GUEST_RUN_DIR = Path("/run/linklab/run")
"""Where the guest mounts the run directory, whatever its name on the host."""


def cache_dir() -> Path:
    """The cache directory; it need not exist."""
    explicit = os.environ.get("LINKLAB_CACHE")
    if explicit:
        return Path(explicit).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").resolve() / "linklab"


def in_guest(path: Path) -> Path:
    """The path by which the guest reaches an absolute path of the host."""
    return GUEST_HOST_ROOT / path.resolve().relative_to("/")
