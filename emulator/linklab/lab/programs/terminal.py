"""Provides a terminal for a program in the lab: a pseudo-terminal, joined to the user's by a
channel.

The channel is a stream of bytes, in the guest a serial line. After one byte that announces a
listener, both sides send frames: typed or printed text, the window's size, or the number of bytes
read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import struct
import termios
import threading
import tty
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

GUEST_DEVICE: Final = "/dev/tty1"
"""The guest's end of the channel."""

ENVIRONMENT: Final = "LINKLAB_TERMINAL"
"""The variable with the channel's descriptor, outside a guest."""

READY: Final = b"\x06"

MOST_UNTAKEN_BYTES: Final = 2048
"""The most unread bytes on the way into the lab. Once its reader has nearly 4 KiB unread, UML's
serial line never receives again (arch/um/drivers/line.c: line_throttle)."""

_HEAD, _WINDOW, _COUNT = struct.Struct("!cI"), struct.Struct("!HH"), struct.Struct("!I")
_TEXT, _SIZE, _TAKEN = b"t", b"s", b"n"
_MOST_BYTES = 1 << 16


class Window(msgspec.Struct, frozen=True):
    """Holds the size of a terminal, in characters."""

    rows: int
    columns: int


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """Describes the terminal of a run's program, which runs `on` the client or server host."""

    window: Window
    on: Literal["client", "server"] = "client"


def text(content: bytes) -> bytes:
    """Returns the frame of typed or printed text, at most 64 KiB."""
    return _HEAD.pack(_TEXT, len(content)) + content


def taken(count: int) -> bytes:
    """Returns the frame that reports `count` bytes of frames as read."""
    return _HEAD.pack(_TAKEN, _COUNT.size) + _COUNT.pack(count)


def resized(window: Window) -> bytes:
    return _HEAD.pack(_SIZE, _WINDOW.size) + _WINDOW.pack(window.rows, window.columns)


class Frames:
    """Extracts frames from a stream of bytes."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def of(self, content: bytes) -> Iterator[bytes | Window | int]:
        """Yields the complete frames: text, a window's size, or a number of bytes read. Raises
        OSError for an invalid frame, because programs in the lab may write anything."""
        self._waiting += content
        while len(self._waiting) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(self._waiting)
            wanted = {_TEXT: min(size, _MOST_BYTES), _SIZE: _WINDOW.size, _TAKEN: _COUNT.size}
            if size != wanted.get(kind):
                raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
            end = _HEAD.size + size
            if len(self._waiting) < end:
                return
            found = bytes(self._waiting[_HEAD.size : end])
            del self._waiting[:end]
            if kind == _TEXT:
                yield found
            elif kind == _SIZE:
                yield Window(*_WINDOW.unpack(found))
            else:
                yield int(_COUNT.unpack(found)[0])


def write_all(descriptor: int, content: bytes) -> None:
    """Writes everything. Raises OSError."""
    while content:
        content = content[os.write(descriptor, content) :]


def channel() -> int:
    """Opens this end of the run's channel. Raises OSError."""
    if ENVIRONMENT in os.environ:
        found = int(os.environ[ENVIRONMENT])
        os.set_inheritable(found, False)
        return found
    found = os.open(GUEST_DEVICE, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(found)
    return found


class PseudoTerminal:
    """A pseudo-terminal whose program a thread joins to a channel, until `close`.

    Give `program_end` to the program as its input and output. If the channel ends because the
    user's terminal died, the program is hung up.
    """

    def __init__(self, channel: int, window: Window) -> None:
        self._channel = channel
        self._own_end, self.program_end = os.openpty()
        os.set_blocking(self._own_end, False)
        self._resize(window)
        self._typed = bytearray()
        self._stop, self._stopper = os.pipe()
        write_all(channel, READY)
        self._thread = threading.Thread(target=self._join)
        self._thread.start()

    def close(self) -> None:
        """Passes on the program's last output and closes everything."""
        os.close(self._stopper)
        self._thread.join()
        for descriptor in (self._stop, self.program_end, self._channel):
            os.close(descriptor)

    def _resize(self, window: Window) -> None:
        size = struct.pack("HHHH", window.rows, window.columns, 0, 0)
        fcntl.ioctl(self._own_end, termios.TIOCSWINSZ, size)

    def _join(self) -> None:
        frames = Frames()
        with contextlib.suppress(OSError), os.fdopen(self._own_end, "rb", buffering=0):
            while True:
                readers = [self._own_end, self._stop]
                if len(self._typed) < _MOST_BYTES:
                    readers.append(self._channel)
                writers = [self._own_end] if self._typed else []
                readable, writable, _ = select.select(readers, writers, [])
                if self._own_end in readable:
                    write_all(self._channel, text(os.read(self._own_end, _MOST_BYTES)))
                elif self._stop in readable:
                    return
                if writable:
                    del self._typed[: os.write(self._own_end, self._typed)]
                if self._channel in readable:
                    content = os.read(self._channel, _MOST_BYTES)
                    if not content:
                        return
                    write_all(self._channel, taken(len(content)))
                    for found in frames.of(content):
                        if isinstance(found, Window):
                            self._resize(found)
                        elif isinstance(found, bytes):
                            self._typed += found
