"""Locks between processes, which end with the process that holds them.

By fcntl and not by the library filelock: what is locked here is also a directory, or a file that
was opened with care before, and filelock opens (and truncates) a path of its own each time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def take(file: IO[bytes] | IO[str] | int) -> None:
    """Locks an open file or directory, once nobody else has it; until it is closed."""
    fcntl.flock(file, fcntl.LOCK_EX)


def try_to_take(file: IO[bytes] | IO[str] | int) -> bool:
    """Locks an open file or directory until it is closed; False where somebody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process is in the block. `path` is a file for the lock alone, made if it is not
    there and left. OSError where it cannot be opened."""
    with path.open("wb") as file:
        take(file)
        yield


@contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Only one process is in the block. OSError where there is no such directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        take(descriptor)
        yield
    finally:
        os.close(descriptor)
