"""Finds and removes the files that a killed linklab left on the machine.

Processes and namespaces end with the process that made them. Scratch directories and half-written
files may be left. Each has its process' number in its name. Tokens of live labs may be left, too. A
lab locks its token as long as it runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from linklab.core.locks import locked, locked_directory, try_to_take
from linklab.core.paths import Cached, cache_dir, in_cache

Kind = Literal["field", "gateway", "guest", "loopback", "page", "run"]
"""What a scratch directory is for."""

TOKEN = ".token"
"""The ending of a live lab's token file, in the cache's `live`."""

_NAME = re.compile(rf"linklab-(?:{'|'.join(get_args(Kind))})-(\d+)-\w+")


def scratch_prefix(kind: Kind) -> str:
    """Returns the prefix for a scratch directory of this process."""
    return f"linklab-{kind}-{os.getpid()}-"


def build_prefix() -> str:
    """Returns the prefix for a directory in which this process builds the guest's kernel."""
    return f"build-{os.getpid()}-"


def image_prefix(name: str) -> str:
    """Returns the prefix for a directory in which this process makes a guest image."""
    return f"new-{name}-{os.getpid()}-"


def image_lock(root: Path) -> Path:
    """Returns the lock file for making and removing the image at `root`."""
    return root.with_name(f"{root.name.partition('-')[0]}.lock")


def remove_image(root: Path) -> None:
    """Removes a guest image as far as possible. After an interruption the rest counts as unfinished."""
    name, _, key = root.name.partition("-")
    with contextlib.suppress(OSError):
        aside = root.with_name(f"{image_prefix(name)}{key}")
        with locked(image_lock(root)):
            root.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def find() -> Iterator[Path]:
    """Finds this user's scratch directories of ended processes.

    In the cache it finds unfinished files, and tokens of labs that have ended.
    """
    for place in sorted(_scratch_places()):
        for path in sorted(Path(place).glob("linklab-*")):
            match = _NAME.fullmatch(path.name)
            if match and _is_our_directory(path) and not is_alive(int(match[1])):
                yield path
    builds = (*in_cache("kernel").glob("build-*"), *in_cache("image").glob("new-*"))
    for path in sorted(builds):
        match = re.fullmatch(r"(?:build|new-[a-z]+)-(\d+)-\w+", path.name)
        if match and not is_alive(int(match[1])):
            yield path
    for name in get_args(Cached):
        for path in sorted(in_cache(name).glob(".*.part")):  # core/whole_file.py
            match = re.fullmatch(r"\..+\.(\d+)\.part", path.name)
            if match and not is_alive(int(match[1])):
                yield path
    yield from (path for path in sorted(in_cache("live").glob(f"*{TOKEN}")) if not _is_locked(path))


def _is_locked(path: Path) -> bool:
    """Tells whether a file is locked; False if it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return not try_to_take(descriptor)
    finally:
        os.close(descriptor)


def _remove_file(path: Path) -> None:
    """Removes a file, except a token that another lab has just written."""
    with contextlib.suppress(OSError):
        if path.suffix != TOKEN:
            path.unlink()
            return
        with locked_directory(path.parent):
            if not _is_locked(path):
                path.unlink()


def remove(*, cache: bool) -> Iterator[str]:
    """Removes what `find` finds, and the cache if `cache`. Yields a line for each."""
    kept = [path for name in get_args(Cached) if (path := in_cache(name)).exists()] if cache else []
    if cache:
        for root in in_cache("image").glob("[!n]*-*"):
            remove_image(root)
    for path in [*find(), *kept]:
        if path.is_file():
            _remove_file(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
        yield f"could not remove {path}" if path.exists() else f"removed {path}"
    if cache:
        with contextlib.suppress(OSError):  # It is missing or not empty.
            cache_dir().rmdir()


def _scratch_places() -> set[str]:
    usual = {tempfile.gettempdir(), "/dev/shm", "/tmp", "/var/tmp"}
    return {str(Path(one).resolve()) for one in usual | {os.environ.get("TMPDIR", "/tmp")}}


def _is_our_directory(path: Path) -> bool:
    """Tells whether a path is the caller's own directory, and not a link to one."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def is_alive(pid: int) -> bool:
    """Tells whether a process with this number runs. A name may have any number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # It is another user's.
    return pid > 0  # 0 is kill(2)'s word for the caller's group.
