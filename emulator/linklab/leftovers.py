"""What a killed linklab may have left on the machine, and removing just that.

Processes and namespaces end with the process that made them; what can be left are
scratch directories, each named after the process that it belonged to.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from linklab.paths import cache_dir

_NAME = re.compile(r"linklab-(?:guest|run)-(\d+)-\w+")


def scratch_prefix(kind: str) -> str:
    """Prefix for a scratch directory of this process; `kind` is `guest` or `run`."""
    return f"linklab-{kind}-{os.getpid()}-"


def find() -> Iterator[Path]:
    """Scratch directories of ours whose process is gone, and unfinished kernel builds."""
    places = {tempfile.gettempdir(), os.environ.get("TMPDIR", "/tmp"), "/dev/shm", "/var/tmp"}
    for place in sorted(places):
        for path in sorted(Path(place).glob("linklab-*")):
            match = _NAME.fullmatch(path.name)
            if match and path.is_dir() and _ours(path) and not _alive(int(match[1])):
                yield path
    builds = cache_dir() / "kernel"
    for path in sorted(builds.glob("build-*")):
        match = re.fullmatch(r"build-(\d+)-\w+", path.name)
        if match and not _alive(int(match[1])):
            yield path


def remove(*, cache: bool) -> Iterator[str]:
    """Removes what `find` finds, with `cache` also the cache; yields a line for each."""
    for path in find():
        shutil.rmtree(path, ignore_errors=True)
        yield f"removed {path}"
    if cache and cache_dir().exists():
        shutil.rmtree(cache_dir())
        yield f"removed {cache_dir()}"


def _ours(path: Path) -> bool:
    return path.stat().st_uid == os.geteuid()


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
