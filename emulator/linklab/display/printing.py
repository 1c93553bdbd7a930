"""The one way out: what others wrote commands no terminal, whoever prints it.

While a command runs, `escaped` stands before standard output and error: text is printed with escapes
for what a terminal would obey. rich's own colours and movements pass, because `console` escapes the
words alone. What a program in the lab wrote and its user asked for goes to `sys.stdout.buffer`, as it is.
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
    """A stream whose text has no other control characters than ends of lines and tabs."""

    def __init__(self, own: TextIO) -> None:
        self.own = own

    def write(self, text: str) -> int:
        """Writes the text with escapes."""
        self.own.write(printable(text, keep=_KEPT))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes all of them with escapes."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def _before(stream: TextIO) -> TextIO:
    if isinstance(stream, _Escaped):
        return stream
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")  # Not every terminal knows every character.
    return cast(TextIO, _Escaped(stream))


@contextmanager
def escaped() -> Iterator[None]:
    """Escapes what is printed in the block; after an error that nobody expected too, whose traceback
    Python prints later."""
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
    """A console of rich for standard output or error, which takes no word for markup or an emoji."""
    from rich.console import Console, ConsoleOptions, RenderableType  # Slow to load.
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
