"""Files of a run directory, which a program in the guest may have replaced by anything.

A link would lead to a file of the host's, a pipe or device would keep its reader waiting: here
only plain files are opened. What a guest left is cleared as it ends (`places/guest/leftover_files.py`); this
is for what is read and written while it runs, or after linklab was killed.
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
    """A name in a run directory that stands for something else than a plain file."""


class TooLargeError(OSError):
    """A file that is larger than what is read."""


MOST_BYTES: Final = 1 << 26
"""How much is read of a file at once, unless told otherwise."""


def opened(path: Path) -> BinaryIO:
    """The file to be read. Raises OSError, NotPlainError where it is a link, pipe or device."""
    return os.fdopen(_descriptor(path, os.O_RDONLY), "rb")


def appending(path: Path) -> BinaryIO:
    """The file to be written at its end, made if it is not there. Raises as `opened`, also where
    the file has a second name, which may be anywhere."""
    return os.fdopen(_descriptor(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab", buffering=0)


def read(path: Path, most: int = MOST_BYTES) -> bytes:
    """All of the file. Raises as `opened`, TooLargeError where it has more than `most` bytes, holes
    included."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise TooLargeError(errno.EFBIG, f"is too large; allowed: {most} bytes", str(path))
        return file.read(most)


def end(path: Path, most: int) -> bytes:
    """The last bytes of the file, at most so many. Raises as `opened`."""
    with opened(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def write(path: Path, content: bytes) -> None:
    """Makes this all of the file. Raises as `appending`."""
    with naming(path), os.fdopen(_descriptor(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate()
        file.write(content)


def _descriptor(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | _SAFELY, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # A link; a pipe without reader, a socket.
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
