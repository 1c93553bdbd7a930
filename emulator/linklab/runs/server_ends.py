"""Tells how a user's server ended during a run."""

from __future__ import annotations

from pathlib import Path

from linklab.core.records import EventRecord, Tail


def found_in(run_dir: Path) -> list[str]:
    """Returns in words each end of the user's server. Raises RecordError."""
    return [
        f"the server {one.detail} (at {one.t_s:.3f} s)"
        for one in Tail(run_dir, EventRecord).read()
        if one.kind == "server" and one.detail.startswith("ended ")
    ]
