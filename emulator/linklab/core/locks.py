"""Locks files between processes. A lock ends with the process that holds it.

It uses fcntl instead of the library filelock. filelock opens and truncates a path each time. Here
the locked object may also be a directory, or a file that was opened safely before.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def take(file: IO[bytes] | IO[str] | int) -> None:
    """Waits for the lock of an open file or directory, and holds it until the file is closed."""
    fcntl.flock(file, fcntl.LOCK_EX)


def try_to_take(file: IO[bytes] | IO[str] | int) -> bool:
    """Locks an open file or directory until it is closed. Returns False if it is locked already."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, waits: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Admits one process at a time into the block.

    `path` is a file only for the lock; it is made if missing, and stays. `waits` is called before it
    waits for another process. Raises OSError if it cannot be opened.
    """
    with path.open("wb") as file:
        if not try_to_take(file):
            waits()
            take(file)
        yield


@contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Admits one process at a time into the block. Raises OSError without such a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        take(descriptor)
        yield
    finally:
        os.close(descriptor)
