"""Writes a scenario file of each live run whose links a user changed by hand (`--record`)."""

from __future__ import annotations

from pathlib import Path

from linklab.core import whole_file
from linklab.core.errors import LinklabError
from linklab.core.records import RecordError
from linklab.realtime import by_hand
from linklab.realtime.by_hand import Executed
from linklab.runs.job import NOBODY
from linklab.scenario import Scenario
from linklab.scenario.name import FORM


def title_of(scenario: Scenario, who: str, seed: int) -> str:
    """Returns the title of a scenario that was made by hand: where it comes from. Pure."""
    return f"{scenario.name} as changed by hand, while {who} ran with seed {seed}"


class RecordFileError(LinklabError, ValueError):
    """The file of a recording cannot be written. The message says why."""


def require_new(file: Path) -> None:
    """Raises RecordFileError if `file` is no new scenario file."""
    if file.suffix != ".yaml" or not FORM.fullmatch(file.stem):
        raise RecordFileError(
            f"{file} is no name of a scenario; allowed: up to 64 of a-z, 0-9 and '-', and "
            ".yaml, such as my-train.yaml"
        )
    if file.exists() or file.is_symlink():
        raise RecordFileError(f"{file} is there already; allowed: a new file")
    if not file.parent.is_dir():
        raise RecordFileError(f"{file.parent} is no directory; allowed: one that is there")


class Recorder:
    """Writes `file` for the first changed run, and `NAME-2.yaml`, … for later ones.

    Raises RecordFileError if `file` is no new scenario file.
    """

    def __init__(self, scenario: Scenario, file: Path) -> None:
        require_new(file)
        self.files: list[Path] = []
        self._scenario = scenario
        self._file = file
        self._written: dict[Path, tuple[Path, list[Executed]]] = {}

    def update(self, run_dir: Path, who: str, seed: int) -> None:
        """Writes the file of a run if its links were changed since the last call. Raises OSError."""
        try:
            changes = by_hand.changes_of(run_dir)
        except RecordError:
            return  # A line is not whole yet, or no linklab wrote it.
        if run_dir not in self._written:
            if not changes:
                return
            self._written[run_dir] = (self._new_file(), [])
        file, before = self._written[run_dir]
        if changes != before:
            title = title_of(self._scenario, who, seed)
            text = by_hand.saved(
                self._scenario,
                changes,
                file.stem,
                title,
                file.parent,
                seed=seed,
                from_s=by_hand.zero_s(run_dir, changes) if who == NOBODY else 0.0,
            )
            whole_file.write(file, text.encode())
            self._written[run_dir] = (file, changes)

    def _new_file(self) -> Path:
        number = len(self.files) + 1
        while True:
            ending = "" if number == 1 else f"-{number}"
            file = self._file.with_stem(f"{self._file.stem[: 64 - len(ending)]}{ending}")
            if not file.exists():
                self.files.append(file)
                return file
            number += 1
