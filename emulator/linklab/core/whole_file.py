"""Writes files atomically: a reader finds the whole file or none, even if the writer is killed.

The content goes to a temporary file in the same directory, is flushed to the disk, and then replaces
the file. A symbolic link with the file's name is replaced, not followed. It is followed only to a
device, a pipe, or an open file of this process (/dev/stdout).

multilink has the same rule for files that a user names (client/internal/plainfile). Both are tested
with its testdata/rule.json.
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

_MOST_LINKS = 40  # The kernel's own limit.
_INTO = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """Yields a file that replaces `path` at the end of the block, unless the block raises.

    Its mode is `mode`, or the umask's, from the start. Temporary files that killed processes left
    are removed. Only one thread of a process may use it at a time. Raises OSError that names `path`.

    Without `mode`, `path` may be a device, a pipe or an open file of this process. It is written at
    the end of the block, unless the block raises.
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
    """Returns a descriptor for writing to a device, pipe or open file of this process.

    Returns None if `path` is a plain file, a directory or missing. Raises OSError.
    """
    own = _own(path)
    if own is not None:
        return _no_terminal(path, os.dup(own))  # Opening a file again would write from its start.
    try:
        found = os.open(
            path, os.O_PATH | os.O_CLOEXEC
        )  # The descriptor stays the same object until it is written.
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
    """Returns this process' descriptor that `path` leads to, such as by /dev/stdout."""
    own = Path("/proc/self/fd").resolve()
    for _ in range(_MOST_LINKS):
        if path.parent.resolve() == own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _no_terminal(path: Path, descriptor: int) -> int:
    """Returns the descriptor, and refuses a terminal, which would obey escape sequences."""
    if not os.isatty(descriptor):
        return descriptor
    os.close(descriptor)
    raise _refused(
        path, "is a terminal: allowed are a file, a pipe and a device that is no terminal"
    )


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EINVAL, why, str(path))


def _of(path: Path, error: OSError) -> OSError:
    """Returns the error with the file's name that the caller asked for."""
    return OSError(error.errno, error.strerror, str(path))


def write(path: Path, content: bytes | str, mode: int | None = None) -> None:
    """Replaces a file's content as `replacing` does.

    Text is written as UTF-8. Surrogates, such as from a file's name, are escaped.
    """
    with replacing(path, mode) as file:
        file.write(
            content.encode(errors="backslashreplace") if isinstance(content, str) else content
        )


def _clear(path: Path) -> None:
    """Removes temporary files of killed processes, and of this process if it was forked."""
    left = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.part")
    for other in path.parent.glob("*.part"):
        match = left.fullmatch(other.name)
        if match and (int(match[1]) == os.getpid() or not is_alive(int(match[1]))):
            other.unlink(missing_ok=True)
