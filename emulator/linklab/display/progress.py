"""The one progress bar: on standard error, where results of a program go to standard output."""

from __future__ import annotations

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from linklab.display.printing import console


def progress(*further: ProgressColumn) -> Progress:
    """A bar with counts and the time passed, and `further` columns; gone when it is done.

    On what is no terminal it is disabled.
    """
    to = console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *further,
        console=to,
        disable=not to.is_terminal,
        transient=True,
    )
