"""Files that are there whole or not at all, whoever reads them and whenever their writer is killed.

What is written stands beside the file under a name of this process, reaches the disk, and then takes
the file's place. A link that has the file's name is replaced, not followed, unless it leads to what
is no file of a directory: a device, a pipe, what this process has open (/dev/stdout).

multilink has the same rule for files that a user names (client/internal/plainfile), and both are
tested with its testdata/rule.json.
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

from linklab.core.naming import naming
from linklab.core.scratch import is_alive

_MOST_LINKS = 40  # As many as the kernel follows.
_INTO = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end of the block, unless that raises.

    At no time has it other rights than `mode`, or what the umask leaves. What killed processes
    left of the same file goes. Raises OSError, which names `path`, of a full disk too. For one thread of a process at a time.

    With no `mode`, `path` may be a device, a pipe or what this process has open: that is written
    into at the end of the block, unless that raises.
    """
    with naming(path), _replacing(path, mode) as file:
        yield file


@contextmanager
def _replacing(path: Path, mode: int | None) -> Iterator[BinaryIO]:
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
    is a plain file, a directory or not there. Raises OSError."""
    own = _own(path)
    if own is not None:
        return _no_terminal(
            path, os.dup(own)
        )  # Opened anew, a file would be written from its start.
    try:
        found = os.open(
            path, os.O_PATH | os.O_CLOEXEC
        )  # It stays the same until it is written into.
    except OSError:
        return None
    try:
        mode = os.fstat(found).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return None
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            kind = "socket" if stat.S_ISSOCK(mode) else "block device"
            raise _refused(
                path, f"is a {kind}: allowed are a plain file, a pipe and a character device"
            )
        return _no_terminal(path, os.open(f"/proc/self/fd/{found}", _INTO))
    except OSError as error:
        raise _of(path, error) from error
    finally:
        os.close(found)


def _own(path: Path) -> int | None:
    """The descriptor of this process that `path` leads to, as /dev/stdout does."""
    own = Path("/proc/self/fd").resolve()
    for _ in range(_MOST_LINKS):
        if path.parent.resolve() == own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _no_terminal(path: Path, descriptor: int) -> int:
    """The descriptor, unless it is a terminal's, which would obey what it is sent."""
    if not os.isatty(descriptor):
        return descriptor
    os.close(descriptor)
    raise _refused(
        path, "is a terminal: allowed are a file, a pipe and a device that is no terminal"
    )


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EINVAL, why, str(path))


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
