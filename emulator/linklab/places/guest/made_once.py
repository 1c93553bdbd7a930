"""Makes a part of the guest in the cache, once however many processes want it at a time."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from linklab.core.errors import LinklabError
from linklab.core.locks import locked
from linklab.display.parts import Progress


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the guest.

    Attributes:
        called: its name in messages.
        directory: where the cache keeps it.
        lock: the file that is locked while it is made.
        prefix: the start of the name of the directory in which this process makes it.
        left: a pattern of such names, of any process.
        needed_bytes: the disk space for making it.
        error: what is raised if it cannot be made.
    """

    called: str
    directory: Path
    lock: Path
    prefix: str
    left: str
    needed_bytes: int
    error: type[LinklabError]


def ensure(
    part: Part,
    cached: Callable[[], Path | None],
    make: Callable[[Path], Path],
    progress: Progress,
) -> Path:
    """Returns the part that `cached` finds, or else that `make` makes in an empty directory.

    Raises the part's error. Nothing is left of what was half made.
    """
    found = cached()
    if found is not None:
        return found
    try:
        part.directory.mkdir(parents=True, exist_ok=True)
        with locked(part.lock, lambda: progress("waiting for another linklab", 0.0)):
            # This process has the lock, so the process that made these was killed.
            for stale in part.directory.glob(part.left):
                shutil.rmtree(stale, ignore_errors=True)
            return cached() or _made(part, make)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise part.error(f"{part.called} cannot be made: {error}") from error
        raise part.error(
            f"no room for {part.called}: {part.directory} needs {part.needed_bytes / 1e6:.0f} MB; "
            "LINKLAB_CACHE names another place"
        ) from error


def _made(part: Part, make: Callable[[Path], Path]) -> Path:
    work = Path(tempfile.mkdtemp(prefix=part.prefix, dir=part.directory))
    try:
        return make(work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
