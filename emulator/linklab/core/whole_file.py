"""Files that are there whole or not at all, whoever reads them and whenever their writer is killed.

What is written stands beside the file under a name of this process, reaches the disk, and then takes
the file's place. A link that has the file's name is replaced, not followed, unless it leads to what
is no file of a directory: a device, a pipe, what this process has open (/dev/stdout).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from linklab.core.scratch import is_alive

_INTO = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end of the block, unless that raises.

    At no time has it other rights than `mode`, or what the umask leaves. What killed processes
    left of the same file goes. Raises OSError. For one thread of a process at a time.

    With no `mode`, `path` may be a device, a pipe or what this process has open: that is written
    into at the end of the block, unless that raises.
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    into = _opened(path) if mode is None else None
    if into is not None:
        with os.fdopen(into, "wb") as target, tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            shutil.copyfileobj(file, target)
        return
    _clear(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(part, flags, 0o666 if mode is None else mode & 0o600)
    except OSError as error:
        raise _of(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        try:
            part.replace(path)
        except OSError as error:
            raise _of(path, error) from error
    finally:
        part.unlink(missing_ok=True)


def _opened(path: Path) -> int | None:
    """A descriptor for writing to a device, pipe or what this process has open; None where `path`
    is anything else or not there. Raises OSError."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return None
    link, own = path, Path("/proc/self/fd").resolve()
    while link.parent.resolve() != own:
        if not link.is_symlink():
            return None if stat.S_ISREG(mode) else os.open(path, _INTO)
        link = link.parent / link.readlink()
    return os.dup(int(link.name))  # Not opened anew: a file would be written from its beginning.


def _of(path: Path, error: OSError) -> OSError:
    """The error, said of the file that somebody asked for."""
    return OSError(error.errno, error.strerror, str(path))


def write(path: Path, content: bytes | str, mode: int | None = None) -> None:
    """Makes this all of the file, as `replacing`; text as UTF-8, with escapes for what is none, as
    in a file's name."""
    with replacing(path, mode) as file:
        file.write(
            content.encode(errors="backslashreplace") if isinstance(content, str) else content
        )


def _clear(path: Path) -> None:
    """Removes what killed processes left, and this one, should it have been forked."""
    left = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.part")
    for other in path.parent.glob("*.part"):
        match = left.fullmatch(other.name)
        if match and (int(match[1]) == os.getpid() or not is_alive(int(match[1]))):
            other.unlink(missing_ok=True)
