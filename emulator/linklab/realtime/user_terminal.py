"""Connects the user's terminal with a program in the lab (`lab/programs/terminal.py`)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import termios
import tty
from collections.abc import Iterator
from types import FrameType

from linklab.core.errors import LinklabError
from linklab.lab.programs.terminal import (
    MOST_UNTAKEN_BYTES,
    READY,
    Frames,
    Window,
    resized,
    text,
    write_all,
)
from linklab.runs.runner import Running

LEAST = Window(rows=2, columns=20)
"""The smallest window with space for a prompt and a command."""

PATIENCE_S = 5.0
"""The time for the lab to end after its terminal has gone."""

_MOST_BYTES = 1 << 16


class TerminalError(LinklabError, RuntimeError):
    """There is no usable terminal."""


def window(descriptor: int) -> Window:
    """Returns a terminal's size. Raises TerminalError if there is none, or it is too small."""
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:
        raise TerminalError(
            "a shell needs a terminal for input and output; without one: linklab exec"
        ) from None
    found = Window(rows=size.lines, columns=size.columns)
    if found.rows < LEAST.rows or found.columns < LEAST.columns:
        raise TerminalError(
            f"the terminal is too small: {found.columns} columns and {found.rows} rows; "
            f"at least {LEAST.columns} and {LEAST.rows}"
        )
    return found


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # The terminal may be gone.
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _changes(descriptor: int) -> Iterator[int]:
    """Yields a descriptor that is readable once the window's size has changed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def changed(_: int, __: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writer, b".")

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield reader
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)


def attend(channel: socket.socket, running: Running, keys: int = 0, screen: int = 1) -> None:
    """Connects the terminal of these descriptors with the program until the lab has ended.

    If the terminal goes away, the program gets a hang-up, and the lab has `PATIENCE_S` to end.
    """
    if _begins(channel, running):
        with _raw(keys), _changes(keys) as changes, contextlib.suppress(OSError):
            _attend(channel, keys, screen, changes)
    channel.close()
    select.select([running], [], [], PATIENCE_S)


def _begins(channel: socket.socket, running: Running) -> bool:
    """Waits until a program in the lab listens. Returns False if the lab ended first."""
    ready, _, _ = select.select([channel, running], [], [])
    return channel in ready and channel.recv(1) == READY


def _attend(channel: socket.socket, keys: int, screen: int, changes: int) -> None:
    """Copies bytes both ways until an end has gone.

    It buffers bytes that the lab does not take yet, so that neither direction blocks the other.
    """
    channel.setblocking(False)
    waiting, frames, untaken = bytearray(), Frames(), 0
    lab = channel.fileno()
    while True:
        readers = [lab, changes, *([keys] if len(waiting) < _MOST_BYTES else [])]
        room = max(0, MOST_UNTAKEN_BYTES - untaken)
        ready, takes, _ = select.select(readers, [lab] if waiting and room else [], [])
        if lab in ready:
            content = channel.recv(_MOST_BYTES)
            if not content:
                return
            for found in frames.of(content):
                if isinstance(found, bytes):
                    write_all(screen, found)
                elif isinstance(found, int):
                    untaken -= found
        if takes:
            sent = channel.send(waiting[:room])
            untaken += sent
            del waiting[:sent]
        if changes in ready:
            os.read(changes, _MOST_BYTES)
            size = os.get_terminal_size(keys)
            waiting += resized(Window(size.lines, size.columns))
        if keys in ready:
            content = os.read(keys, _MOST_BYTES)
            if not content:
                return
            waiting += text(content)
