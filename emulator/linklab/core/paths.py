"""Defines paths: the package, its data, the cache, and the directories of the guest.

In a checkout the data are the repository's. An installed wheel has them in the package. All that
linklab writes outside a run directory lies in one cache directory (`LINKLAB_CACHE`, else
`$XDG_CACHE_HOME/linklab`, else `~/.cache/linklab`).
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Literal

PYTHON_PATH = Path(__file__).resolve().parents[2]
"""Where Python finds this package."""

REPOSITORY = PYTHON_PATH.parent
"""The checkout, if this is one."""

_PACKAGED = PYTHON_PATH / "linklab" / "data"
INSTALLED = _PACKAGED.is_dir()
"""Whether this is an installed wheel and not a checkout."""

DATA = _PACKAGED if INSTALLED else REPOSITORY
PROFILES = DATA / "profiles"
VEGA = DATA / "vega.js"
"""The charts' JavaScript. Only a wheel has it."""

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
"""The client multilink: `LINKLAB_MULTILINK`, else the checkout's build, else the one next to Python
or on PATH."""

GUEST_MULTILINK = (
    MULTILINK if platform.machine() == "x86_64" else MULTILINK.with_name("multilink-linux-amd64")
)
"""The multilink for guests, which have x86-64 processors on every machine."""

PEERS = REPOSITORY / "build" / "peers" / "bin"
"""The directory of the peers that `make peers-quic` compiles in a checkout."""

GUEST_EXIT_FILE = "guest-exit"
"""The file of the run directory with the exit code of the execution in the guest."""

GUEST_RUN_DIR = Path("/run/linklab/run")
"""The guest's mount point of the run directory."""

GUEST_FILES = Path("/run/linklab/files")
"""The guest's directory for the client, the payload and certificates."""

GUEST_HOST_ROOT = Path("/host")
"""The guest's mount point of the host's files, and the root of the user's own programs."""


def cache_dir() -> Path:
    """Returns the cache directory, whether it exists or not."""
    explicit = os.environ.get("LINKLAB_CACHE")
    if explicit:
        return Path(explicit).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").resolve() / "linklab"


Cached = Literal[
    "authority", "bundle", "ca.pem", "cores", "go", "image", "kernel", "live", "payloads", "vega"
]
"""linklab's entries in the cache directory; a user may keep other files there. `go` is of
emulator/setup/client."""


def in_cache(what: Cached) -> Path:
    """Returns a file or directory of the cache, whether it exists or not."""
    return cache_dir() / what
