"""Reads how a baseline's downloads have changed, from the history of its file in git.

git log -- profiles/regression/default.baseline.yaml
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.regression import baseline
from linklab.regression.baseline import Baseline, BaselineError
from linklab.regression.figures import Cell
from linklab.runs.figures import DOWNLOAD

MOST: Final = 12
"""The number of revisions that are read, which is what a table can hold."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The download times of a revision: seconds by cell.

    `name` is short. `about` says why the baseline was accepted, or what it is.
    """

    name: str
    about: str
    downloads_s: Mapping[Cell, float]


@dataclass(frozen=True, slots=True)
class CellHistory:
    """A download in all revisions: seconds, and the change from the base revision.

    None if a revision did not have the download.
    """

    cell: Cell
    seconds: tuple[float | None, ...]
    changes: tuple[float | None, ...]


def of_git(path: Path) -> list[Revision]:
    """Returns the last accepted baselines of a file, the oldest first.

    Baselines in an old format are left out. Raises BaselineError if git does not know the file.
    """
    said = _git(path, "log", f"-n{MOST}", "--format=%h", "--", path.name)
    found = []
    for commit in reversed(said.split()):
        try:
            old = baseline.parse(_git(path, "show", f"{commit}:./{path.name}"), path.name)
        except BaselineError:
            continue
        found.append(of_baseline(commit, old))
    if not found:
        raise BaselineError(f"{path}: git knows no revision of it")
    return found


def of_baseline(name: str, old: Baseline) -> Revision:
    """Makes a revision of a baseline."""
    downloads = {cell: values[DOWNLOAD.key] for cell, values in old.cells.items()}
    known = {cell: value for cell, value in downloads.items() if value is not None}
    return Revision(name, f"{old.made_on}: {old.reason}", known)


def cell_histories(revisions: Sequence[Revision], base: int) -> list[CellHistory]:
    """Compares the newest revision's downloads with the revision at `base`, worst first. Pure."""
    newest, reference = revisions[-1], revisions[base]
    found = []
    for cell in newest.downloads_s:
        seconds = tuple(one.downloads_s.get(cell) for one in revisions)
        accepted = reference.downloads_s.get(cell)
        changes = tuple(
            None if value is None or not accepted else value / accepted - 1 for value in seconds
        )
        found.append(CellHistory(cell, seconds, changes))
    return sorted(found, key=lambda one: (-(one.changes[-1] or 0.0), one.cell))


def _git(path: Path, *words: str) -> str:
    """Runs git in the directory of a file, and returns its output. Raises BaselineError."""
    try:
        done = subprocess.run(
            ["git", "-C", str(path.resolve().parent), *words],
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError as error:
        raise BaselineError(f"{path}: no git on this machine") from error
    except subprocess.CalledProcessError as error:
        raise BaselineError(f"{path}: {error.stderr.strip()}") from error
    return done.stdout
