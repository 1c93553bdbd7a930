"""Tells callers how far a request is. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

PLACE: Final = "place"
RUNS: Final = "runs"


class Progress(NamedTuple):
    """How far a part of a request is.

    `part` is `place` (chosen once), `image` or a kernel's name (of a guest that is not in the cache
    yet), or `runs`. `what` says in words what happens. For runs, `done` counts the finished ones. A
    client's run that goes on counts with the share of its payload that the links have carried.
    """

    part: str
    what: str
    done: float
    total: float


Tell = Callable[[Progress], None]
"""A function that is called with every progress. Two threads may call it at the same time while
image and kernel are made."""


def silent(_: Progress) -> None:
    """Ignores progress."""
