"""What a killed linklab may have left on the machine, and removing just that.

Processes and namespaces end with the process that made them. What can be left are scratch
directories and half-written files, each named after the process that it belonged to, and the
tokens of live labs, which a lab has locked as long as it lives.
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

Kind = Literal["field", "gateway", "guest", "loopback", "run"]
"""What a scratch directory is for."""

TOKEN = ".token"
"""How the name of a live lab's token ends, in the cache's `live`."""

_NAME = re.compile(rf"linklab-(?:{'|'.join(get_args(Kind))})-(\d+)-\w+")


def scratch_prefix(kind: Kind) -> str:
    """Prefix for a scratch directory of this process."""
    return f"linklab-{kind}-{os.getpid()}-"


def build_prefix() -> str:
    """Prefix for a directory in which this process builds the guest's kernel."""
    return f"build-{os.getpid()}-"


def image_prefix(name: str) -> str:
    """Prefix for a directory in which this process makes an image of the guest's."""
    return f"new-{name}-{os.getpid()}-"


def image_lock(root: Path) -> Path:
    """The file that whoever makes or removes the image at `root` locks."""
    return root.with_name(f"{root.name.partition('-')[0]}.lock")


def remove_image(root: Path) -> None:
    """Removes a whole image of the guest's as far as possible. What is left if that is interrupted
    counts as unfinished."""
    name, _, key = root.name.partition("-")
    with contextlib.suppress(OSError):
        aside = root.with_name(f"{image_prefix(name)}{key}")
        with locked(image_lock(root)):
            root.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def find() -> Iterator[Path]:
    """Scratch directories of ours whose process is gone; in the cache what is unfinished, and tokens
    of labs that are gone."""
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
    """Whether somebody has locked a file, which is gone or no file of ours if it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return not try_to_take(descriptor)
    finally:
        os.close(descriptor)


def _remove_file(path: Path) -> None:
    """Removes a file, but no token that another lab has just put there."""
    with contextlib.suppress(OSError):
        if path.suffix != TOKEN:
            path.unlink()
            return
        with locked_directory(path.parent):
            if not _is_locked(path):
                path.unlink()


def remove(*, cache: bool) -> Iterator[str]:
    """Removes what `find` finds, with `cache` also the cache; yields a line for each."""
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
        with contextlib.suppress(OSError):  # Not there, or not empty.
            cache_dir().rmdir()


def _scratch_places() -> set[str]:
    usual = {tempfile.gettempdir(), "/dev/shm", "/tmp", "/var/tmp"}
    return {str(Path(one).resolve()) for one in usual | {os.environ.get("TMPDIR", "/tmp")}}


def _is_our_directory(path: Path) -> bool:
    """Whether it is a directory, not a link to one, and the caller's."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def is_alive(pid: int) -> bool:
    """Whether a process of this machine has this number."""
    return Path(f"/proc/{pid}").exists()
