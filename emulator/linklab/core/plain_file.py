"""Opens files of a run directory, which a program in the guest may have replaced by anything.

A link could lead to a file of the host, and a pipe or device could block its reader. So only plain
files are opened. When a guest ends, `places/guest/leftover_files.py` removes the others. This module
is for files used while a guest runs, or after linklab was killed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from linklab.core.naming import naming

_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotPlainError(OSError):
    """The name in a run directory is not a plain file."""


class TooLargeError(OSError):
    """The file is larger than the limit."""


MOST_BYTES: Final = 1 << 26
"""The default limit for reading a whole file."""


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading. Raises OSError, and NotPlainError for a link, pipe or device."""
    return os.fdopen(_descriptor(path, os.O_RDONLY), "rb")


def appending(path: Path) -> BinaryIO:
    """Opens a file for appending; makes it if missing.

    Raises as `opened`, also if the file has a second name, which could be anywhere.
    """
    return os.fdopen(_descriptor(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab", buffering=0)


def read(path: Path, most: int = MOST_BYTES) -> bytes:
    """Reads a whole file. Raises as `opened`, and TooLargeError above `most` bytes."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise TooLargeError(errno.EFBIG, f"is too large; allowed: {most} bytes", str(path))
        # Python allocates what it is asked for. In the guest, 64 MiB take 60 ms.
        return file.read(size)


def end(path: Path, most: int) -> bytes:
    """Reads the last bytes of a file, at most `most`. Raises as `opened`."""
    with opened(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def write(path: Path, content: bytes) -> None:
    """Replaces a file's content. Raises as `appending`."""
    with naming(path), os.fdopen(_descriptor(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate()
        file.write(content)


def _descriptor(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | _SAFELY, 0o666)
    except OSError as error:
        if error.errno in (
            errno.ELOOP,
            errno.ENXIO,
        ):  # It is a link, a pipe without a reader, or a socket.
            raise _not_plain(path) from None
        raise
    status = os.fstat(descriptor)
    written_elsewhere = flags & os.O_WRONLY and status.st_nlink > 1
    if stat.S_ISREG(status.st_mode) and not written_elsewhere:
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise _not_plain(path)


def _not_plain(path: Path) -> NotPlainError:
    return NotPlainError(errno.EINVAL, "is no plain file", str(path))
