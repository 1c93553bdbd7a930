"""Escapes everything that linklab prints, so that untrusted text cannot control the terminal.

While a command runs, `escaped` replaces standard output and standard error. They escape what a
terminal would obey. rich's own colours and cursor movements pass, because `console` escapes only the
words. Output of a program in the lab that the user asked for goes to `sys.stdout.buffer`, unchanged.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from linklab.core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

_KEPT = "\n\t"


class _Escaped:
    """A stream that escapes all control characters except line ends and tabs."""

    def __init__(self, own: TextIO) -> None:
        self.own = own

    def write(self, text: str) -> int:
        self.own.write(printable(text, keep=_KEPT))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes the lines, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def _before(stream: TextIO) -> TextIO:
    if isinstance(stream, _Escaped):
        return stream
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")  # Some terminals lack some characters.
    return cast(TextIO, _Escaped(stream))


@contextmanager
def escaped() -> Iterator[None]:
    """Escapes all output of the block.

    After an unexpected error it stays active, because Python prints the traceback later.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_before, streams)
    try:
        yield
    except Exception:
        raise
    except BaseException:
        sys.stdout, sys.stderr = streams
        raise
    sys.stdout, sys.stderr = streams


def console(*, stderr: bool = False) -> Console:
    """Returns a rich console for standard output or error, without markup and emoji."""
    from rich.console import Console, ConsoleOptions, RenderableType  # rich is slow to load.
    from rich.segment import Segment

    class Escaping(Console):
        """Escapes words as they are laid out."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                words = text if control else printable(text, keep=_KEPT)
                yield Segment(words, style, control)

    stream = sys.stderr if stderr else sys.stdout
    own = stream.own if isinstance(stream, _Escaped) else stream
    return Escaping(file=own, markup=False, emoji=False)
