"""Where things are: the package, its data, the cache, and where the guest has its run directory.

In a checkout the data are the repository's; an installed wheel brings them in the package.
Everything that linklab makes outside a run directory lies under one cache
directory (`LINKLAB_CACHE`, else `$XDG_CACHE_HOME/linklab`, else `~/.cache/linklab`).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Literal

PYTHON_PATH = Path(__file__).resolve().parents[2]
"""Where Python finds this package."""

REPOSITORY = PYTHON_PATH.parent
"""The checkout, where this is one."""

_PACKAGED = PYTHON_PATH / "linklab" / "data"
INSTALLED = _PACKAGED.is_dir()
"""Whether this is an installed wheel and not a checkout."""

DATA = _PACKAGED if INSTALLED else REPOSITORY
PROFILES = DATA / "profiles"
SERVER_CONFIGURATION = DATA / "server" / "h2o.conf"
SERVER_EXCHANGE = DATA / "server" / "exchange.rb"


def _multilink() -> Path:
    named = os.environ.get("LINKLAB_MULTILINK")
    if named:
        return Path(named).resolve()
    if not INSTALLED:
        return DATA / "build" / "multilink"
    beside = Path(sys.executable).with_name("multilink")
    return (beside if beside.exists() else Path(shutil.which("multilink") or beside)).resolve()


MULTILINK = _multilink()
"""The client that runs: what `LINKLAB_MULTILINK` names, else the checkout's build, else the one
beside Python or on PATH."""

GUEST_EXIT_FILE = "guest-exit"
"""Where in the run directory the guest leaves the exit code of what it executed."""

GUEST_RUN_DIR = Path("/run/linklab/run")
"""Where the guest mounts the run directory, whatever its name on the host."""

GUEST_FILES = Path("/run/linklab/files")
"""Where the guest has what its lab is made of: the client, the payload, certificates."""

GUEST_HOST_ROOT = Path("/host")
"""Where the guest has the host's files; the user's own programs have it as their root."""


def cache_dir() -> Path:
    """The cache directory; it need not exist."""
    explicit = os.environ.get("LINKLAB_CACHE")
    if explicit:
        return Path(explicit).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").resolve() / "linklab"


Cached = Literal[
    "authority", "bundle", "ca.pem", "cores", "go", "image", "kernel", "live", "payloads", "vega"
]
"""What linklab keeps in the cache directory, which a user may have made for other things too. `go` is
emulator/setup/client's."""


def in_cache(what: Cached) -> Path:
    """A file or directory in the cache; it need not exist."""
    return cache_dir() / what
