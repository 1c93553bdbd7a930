"""Makes the progress bar, on standard error, because results go to standard output."""

from __future__ import annotations

from typing import Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from linklab.display.printing import console

_RECENT_S: Final = 300.0
"""The time left follows from the pace of so many seconds. A run on an emulated processor takes minutes."""


def progress(*further: ProgressColumn) -> Progress:
    """Returns a bar with counts, the elapsed time, and `further` columns.

    It disappears at the end. Without a terminal it is disabled.
    """
    to = console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *further,
        console=to,
        speed_estimate_period=_RECENT_S,
        disable=not to.is_terminal,
        transient=True,
    )
