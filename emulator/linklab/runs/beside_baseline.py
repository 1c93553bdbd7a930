"""What a regression suite says of a run: how far its figures moved, in its run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from linklab.core import plain_file, records
from linklab.core.bounded import Few, Figure, Name

FILE: Final = "regression.json"


class Movement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure beside its baseline, in base units; None is what its program does not tell.

    `bounds` is the movement by its bound: above 1 is worse, below -1 better. None is worse whatever
    the bound: the figure is told now and was not before, or the other way round, or the download
    fails.
    """

    figure: Name
    baseline: Figure | None
    now: Figure | None
    bounds: Figure | None


class BesideBaseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A download of a suite and all its movements."""

    suite: Name
    movements: Annotated[tuple[Movement, ...], Few]


def write(run_dir: Path, found: BesideBaseline) -> None:
    """Writes it beside the run's manifest."""
    content = msgspec.json.format(msgspec.json.encode(found), indent=2)
    plain_file.write(run_dir / FILE, content + b"\n")


def read(run_dir: Path) -> BesideBaseline | None:
    """What a suite said of a run; None of one that is in no suite. RecordError where the file holds
    something else."""
    try:
        return records.document(run_dir / FILE, BesideBaseline)
    except FileNotFoundError:
        return None
