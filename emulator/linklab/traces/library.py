"""Finds the traces that ship with linklab."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from linklab.core.paths import PROFILES
from linklab.schema.named_files import NamedFiles
from linklab.traces.trace import TraceError

TRACES: Final = PROFILES / "traces"
"""The directory of the shipped traces."""

_MADE_BY = "made by: python -m linklab.traces, which makes the same bytes again"
"""Commit 7bc72e0f was the last with that program. The files keep their bytes, which baselines know."""

_FILES: Final = NamedFiles("trace", (".csv",), TraceError)


def names() -> list[str]:
    """Lists the names of the shipped traces, sorted."""
    return _FILES.names(TRACES)


def find(name_or_path: str, base: Path | None = None) -> Path:
    """Returns the file of a trace, by name or by path relative to `base`. Raises TraceError."""
    return _FILES.find(name_or_path, TRACES, base)


def is_generated(header: Iterable[str]) -> bool:
    """Tells from the comments at the start of a trace's file whether linklab generated it."""
    return _MADE_BY in header
