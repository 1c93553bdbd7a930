"""Opens a recording: a plain file, or packed with gzip. It is read as a stream."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from linklab.traces.trace import TraceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES: Final = 1 << 16
"""How much of a file detection sees."""

_GZIP: Final = b"\x1f\x8b"
_REFUSED: Final = {
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ\0": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"PK\x03\x04": "packed with zip",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class _Stream(io.RawIOBase):
    """Reads what a function returns, block by block."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        super().__init__()
        self._read = read
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        block = self._rest or self._read()
        count = min(len(view), len(block))
        view[:count], self._rest = block[:count], block[count:]
        return count


def opened(path: Path, open_files: ExitStack) -> BufferedReader:
    """Opens a file. Raises TraceError, also while it is read."""
    try:
        file: BufferedReader = BufferedReader(FileIO(path), HEAD_BYTES)
        open_files.enter_context(file)
        head = file.peek(8)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if head.startswith(_GZIP):
        unpacked = open_files.enter_context(gzip.GzipFile(fileobj=file))
        file = _buffered(lambda: _unpacked(unpacked, path), open_files)
        head = file.peek(8)
    for begin, name in _REFUSED.items():
        if head.startswith(begin):
            raise TraceError(f"{path}: is {name}; allowed: UTF-8, plain or packed with gzip")
    return file


def _buffered(read: Callable[[], bytes], open_files: ExitStack) -> BufferedReader:
    return open_files.enter_context(BufferedReader(_Stream(read), HEAD_BYTES))


def _unpacked(file: gzip.GzipFile, path: Path) -> bytes:
    try:
        return file.read(HEAD_BYTES)
    except (EOFError, OSError, zlib.error) as error:
        raise TraceError(
            f"{path}: the gzip data is damaged or cut off; allowed: a whole file"
        ) from error
