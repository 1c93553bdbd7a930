"""Reads and writes a regression suite's verdict on a run: how far its figures moved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from linklab.core import plain_file, records
from linklab.core.bounded import Few, Figure, Name

FILE: Final = "regression.json"


class Movement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Holds a figure and its baseline, in base units. None means that the program does not report
    the figure.

    `bounds` is the change divided by its bound. Above 1 is worse, below -1 better. None counts as
    worse: the figure appeared or disappeared, or the download failed.
    """

    figure: Name
    baseline: Figure | None
    now: Figure | None
    bounds: Figure | None


class BesideBaseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Holds a suite's download and all its movements."""

    suite: Name
    movements: Annotated[tuple[Movement, ...], Few]


def write(run_dir: Path, found: BesideBaseline) -> None:
    """Writes the verdict beside the run's manifest."""
    content = msgspec.json.format(msgspec.json.encode(found), indent=2)
    plain_file.write(run_dir / FILE, content + b"\n")


def read(run_dir: Path) -> BesideBaseline | None:
    """Reads the verdict, None if the run belongs to no suite. Raises RecordError for an invalid
    file."""
    try:
        return records.document(run_dir / FILE, BesideBaseline)
    except FileNotFoundError:
        return None
