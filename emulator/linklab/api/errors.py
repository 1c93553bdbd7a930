"""Defines the errors of requests: one that cannot be carried out as given, one whose run failed.
Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linklab.core.errors import LinklabError

if TYPE_CHECKING:
    from linklab.analysis.run import Run


class UsageError(LinklabError, ValueError):
    """A request cannot be carried out as given."""


class FailedRunError(LinklabError, RuntimeError):
    """A run ended without a result. The message says why and names its directory; `run` is what it
    left."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class LiveLabError(LinklabError, RuntimeError):
    """A lab on the real clock did not start. The message says why."""
