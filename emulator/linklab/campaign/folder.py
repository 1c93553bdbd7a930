"""Keeps a campaign's run directories, and knows which are complete.

`campaign.json` in the same directory records the requested runs and the programs' versions. So a
campaign that is resumed does not mix its figures with others.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from linklab.campaign import machine
from linklab.campaign.wire_format import PART_PREFIX, Parcel, unpack
from linklab.core import locks, records, whole_file
from linklab.core.errors import LinklabError
from linklab.core.records import RecordError
from linklab.runs import summary
from linklab.runs.run_figures import RunFigures

NOTE: Final = "campaign.json"


class FolderError(LinklabError, RuntimeError):
    """The directory cannot be used. The message says why and what to do."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `campaign.json`. `runs` has a hash of each run's request."""

    format: Literal[1] = 1
    campaign: str
    machine: dict[str, str]
    runs: dict[str, str]


@contextmanager
def opened(
    path: Path, campaign: str, facts: dict[str, str], parcels: Mapping[str, Parcel]
) -> Iterator[dict[str, RunFigures]]:
    """Locks the directory for this process, and yields the figures of its complete runs.

    Raises FolderError if another campaign uses it, or if complete runs are of other programs or
    scenarios.
    """
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not locks.try_to_take(descriptor):
            raise FolderError(f"{path}: another campaign is at work there")
        for part in path.glob(f"{PART_PREFIX}*"):
            _remove(part)
        asked = {label: _hash(parcel) for label, parcel in parcels.items()}
        whole = {label: figures for label in asked if (figures := _whole(path / label))}
        old = _read(path)
        if whole:
            _check(path, old, facts, {label: asked[label] for label in whole})
        runs = {**(old.runs if old and old.machine == facts else {}), **asked}
        _write(path, Note(campaign=campaign, machine=facts, runs=runs))
        yield whole
    finally:
        os.close(descriptor)


def keep(path: Path, label: str, packed: bytes) -> Path:
    """Unpacks a run's directory, and replaces an incomplete one."""
    run_dir = path / label
    _remove(run_dir)
    unpack(packed, run_dir)
    return run_dir


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _hash(parcel: Parcel) -> str:
    """Returns a hash of a run's request, without machine and timeout."""
    plain = msgspec.structs.replace(parcel, machine={}, timeout_s=None)
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()[:16]


def _whole(run_dir: Path) -> RunFigures | None:
    """Returns the figures of a run directory; None if it is not complete."""
    try:
        return summary.read(run_dir)
    except OSError:
        return None


def _read(path: Path) -> Note | None:
    try:
        return records.document(path / NOTE, Note)
    except FileNotFoundError:
        return None
    except RecordError as error:
        raise FolderError(str(error)) from error


def _check(path: Path, old: Note | None, facts: Mapping[str, str], asked: dict[str, str]) -> None:
    """Raises FolderError if the complete runs do not fit the runs to come."""
    remedy = "give another --out, or remove it"
    if old is None:
        raise FolderError(f"{path}: its runs are not of a campaign ({NOTE} is missing): {remedy}")
    different = machine.differences(old.machine, facts)
    if different:
        raise FolderError(
            f"{path}: its runs were made with other programs: {', '.join(different)}; {remedy}"
        )
    for label, wanted in asked.items():
        if old.runs.get(label) != wanted:
            raise FolderError(f"{path / label}: was another scenario or command; {remedy}")


def _write(path: Path, note: Note) -> None:
    whole_file.write(path / NOTE, msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")
