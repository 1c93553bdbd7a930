"""The one progress bar: on standard error, where results of a program go to standard output."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


def progress(*further: ProgressColumn) -> Progress:
    """A bar with counts and the time passed, and `further` columns; gone when it is done.

    On what is no terminal it is disabled.
    """
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *further,
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
