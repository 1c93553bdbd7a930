"""Shows how far each part of a longer job is, such as the guest's image and its kernel.

At a terminal each part has a line with a bar. Elsewhere each part gets a line at its start, every
`PERIOD_S`, and at its end. Everything goes to standard error.

`make setup` runs its parts as separate programs. Then `PROGRESS_FD` names a pipe, and the parts
write their progress there instead (emulator/setup/side_by_side.py shows all of them). Set-up runs
this module before there is a Python environment, so it needs nothing but Python.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from linklab.core.printable import printable

PROGRESS_FD = "LINKLAB_PROGRESS_FD"
"""The environment variable with the number of the pipe's descriptor."""

PERIOD_S = 15.0
"""The time between two lines of a part where there is no terminal."""

_REDRAW_S = 0.2
_BAR_COLUMNS = 20

Progress = Callable[[str, float], None]
"""A function that is called with the current step and the finished fraction. 1 ends the part."""


@dataclass
class _Part:
    name: str
    begun_s: float
    what: str = ""
    fraction: float = 0.0
    told_s: float | None = None
    ended: bool = False


def bar_line(name: str, what: str, fraction: float, elapsed_s: float, columns: int) -> str:
    """Returns a part's line at a terminal, at most `columns` wide. Pure."""
    full = round(_BAR_COLUMNS * min(1.0, max(0.0, fraction)))
    bar = "━" * full + "─" * (_BAR_COLUMNS - full)
    minutes, seconds = divmod(int(elapsed_s), 60)
    return f"{name:8} {bar} {minutes}:{seconds:02} {what}"[:columns]


class Parts:
    """Shows parts as long as the `with` block lasts. Threads may report at the same time."""

    def __init__(self, to: TextIO | None = None, period_s: float = PERIOD_S) -> None:
        said_to = to or sys.stderr
        # This escapes the words itself. `printing.escaped` would escape the movements of the cursor.
        self._to: TextIO = getattr(said_to, "own", said_to)
        self._period_s = period_s
        self._terminal = self._to.isatty()
        pipe = os.environ.get(PROGRESS_FD, "")
        self._pipe = int(pipe) if pipe.isdecimal() else None
        self._parts: dict[str, _Part] = {}
        self._drawn = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._drawing = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Parts:
        if self._pipe is None:
            self._drawing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._pipe is None:
            self._drawing.join()
            with self._lock:
                self._clear()

    def part(self, name: str) -> Progress:
        """Returns the function to report a part's progress by."""
        return lambda what, fraction: self.report(name, what, fraction)

    def report(self, name: str, what: str, fraction: float) -> None:
        """Takes a part's current step and finished fraction. A part begins with its first report."""
        if self._pipe is not None:
            os.write(self._pipe, f"{name}\t{fraction:.4f}\t{what}\n".encode())
            return
        now_s = time.monotonic()
        with self._lock:
            part = self._parts.setdefault(name, _Part(name, now_s))
            part.what, part.fraction = printable(what), fraction
            ends = fraction >= 1 and not part.ended
            part.ended = fraction >= 1
            if not self._terminal and (part.told_s is None or ends):
                self._tell(part, now_s)

    def say(self, line: str) -> None:
        """Prints a line of a part's program above the bars."""
        with self._lock:
            self._clear()
            print(printable(line, keep="\t"), file=self._to, flush=True)

    def _tell(self, part: _Part, now_s: float) -> None:
        part.told_s = now_s
        after = f", {now_s - part.begun_s:.0f} s" if now_s - part.begun_s >= 1 else ""
        print(f"linklab: {part.name}: {part.what}{after}", file=self._to, flush=True)

    def _draw(self) -> None:
        while not self._over.wait(_REDRAW_S):
            now_s = time.monotonic()
            with self._lock:
                if self._terminal:
                    self._clear()
                    self._draw_bars(now_s)
                    continue
                for part in self._parts.values():
                    if not part.ended and now_s - (part.told_s or now_s) >= self._period_s:
                        self._tell(part, now_s)

    def _draw_bars(self, now_s: float) -> None:
        size = shutil.get_terminal_size()
        shown = [part for part in self._parts.values() if not part.ended][: size.lines - 1]
        for part in shown:
            elapsed_s = now_s - part.begun_s
            line = bar_line(part.name, part.what, part.fraction, elapsed_s, size.columns - 1)
            self._to.write(f"{line}\n")
        self._to.flush()
        self._drawn = len(shown)

    def _clear(self) -> None:
        if self._drawn:
            self._to.write(f"\033[{self._drawn}F\033[J")
            self._to.flush()
            self._drawn = 0
