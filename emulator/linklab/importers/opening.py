"""Opens a recording: a plain file, packed with gzip, or in UTF-16 as PowerShell writes it.

It is read as a stream, and every format sees UTF-8.
"""

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
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_PACKED: Final = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
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
    for magic, name in _PACKED.items():
        if head.startswith(magic):
            raise TraceError(f"{path}: is packed with {name}; allowed: unpacked, or with gzip")
    for mark, encoding in _UTF_16.items():
        if head.startswith(mark):
            return _buffered(_recoding(file, encoding, path), open_files)
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


def _recoding(file: BufferedReader, encoding: str, path: Path) -> Callable[[], bytes]:
    """Returns a function that reads the next block as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()

    def read() -> bytes:
        text = ""
        while not text:
            block = file.read(HEAD_BYTES)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise TraceError(f"{path}: is not whole UTF-16; allowed: UTF-8 text") from error
            if not block:
                break
        return text.encode()

    return read
