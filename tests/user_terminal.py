"""Simulates a user at a terminal: typed input and seen output."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path
from types import TracebackType

from conftest import command, environment

PATIENCE_S = 60.0
"""The time to wait for expected output, on a machine that is busy with other tests."""


class UserTerminal:
    """Runs `linklab` with these words on a pseudo-terminal."""

    def __init__(self, directory: Path, *words: object, rows: int = 24, columns: int = 80) -> None:
        self.seen = ""
        self._own, far = os.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command(*words)],
            stdin=far,
            stdout=far,
            stderr=far,
            cwd=directory,
            env={**environment(), "TERM": "xterm"},
        )
        os.close(far)

    def __enter__(self) -> UserTerminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.die()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)

    def resize(self, rows: int, columns: int) -> None:
        """Resizes the window."""
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        r"""Types text. Ctrl-C is \x03."""
        content = text.encode()
        while content:
            _, _, _ = select.select([], [self._own], [])
            content = content[os.write(self._own, content[:1024]) :]
            self._look(0.0)

    def expect(self, pattern: str, patience_s: float = PATIENCE_S) -> str:
        """Returns the output up to a match of this pattern. The next call searches after it."""
        deadline = time.monotonic() + patience_s
        while (found := re.search(pattern, self.seen)) is None:
            left_s = deadline - time.monotonic()
            if left_s < 0 or not self._look(left_s):
                raise AssertionError(f"{pattern!r} does not come, but {self.seen[-2000:]!r}")
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def end(self) -> int:
        """Waits for the end. Returns the exit code."""
        while self._look(PATIENCE_S):
            pass
        return self.process.wait(timeout=PATIENCE_S)

    def die(self) -> None:
        """Closes the window."""
        with contextlib.suppress(OSError):
            os.close(self._own)

    def _look(self, patience_s: float) -> bool:
        """Reads new output. Returns False if there is none in time, or never will be."""
        ready, _, _ = select.select([self._own], [], [], patience_s)
        if not ready:
            return False
        try:
            content = os.read(self._own, 65536)
        except OSError:  # No process has it open any more.
            return False
        self.seen += content.decode(errors="replace")
        return bool(content)
