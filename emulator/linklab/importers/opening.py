"""Opens a recording: a plain file, or packed with gzip. It is read as a stream."""

from __future__ import annotations

import gzip
import zlib
from contextlib import ExitStack
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Final

from linklab.traces.trace import TraceError

HEAD_BYTES: Final = 1 << 16
"""How much of a file detection sees."""

_GZIP: Final = b"\x1f\x8b"


class _Unpacked(gzip.GzipFile):
    """Reads a packed file. Raises TraceError for damaged data."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        super().__init__(fileobj=file)
        self._path = path

    def read(self, size: int | None = -1) -> bytes:
        try:
            return super().read(size)
        except (EOFError, OSError, zlib.error) as error:
            raise TraceError(
                f"{self._path}: the gzip data is damaged or cut off; allowed: a whole file"
            ) from error


def opened(path: Path, open_files: ExitStack) -> BufferedReader:
    """Opens a file. Raises TraceError, also while it is read."""
    try:
        file: BufferedReader = BufferedReader(FileIO(path), HEAD_BYTES)
        open_files.enter_context(file)
        is_packed = file.peek(len(_GZIP)).startswith(_GZIP)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if not is_packed:
        return file
    unpacked = open_files.enter_context(_Unpacked(file, path))
    return open_files.enter_context(BufferedReader(unpacked, HEAD_BYTES))
