"""Reads and writes how a run ended: `outcome.json` of a run directory, or `error`."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from linklab.core import plain_file, records
from linklab.core.bounded import ByName, Bytes, ExitCode, Name, Nanoseconds

FILE, _ERROR = "outcome.json", "error"

HUNG = "still running after"
"""The words in the error of a run that was ended because it hung."""

_ERROR_BYTES = 65536
"""The most bytes that are read of an error, which a program in the lab may have made large."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Describes the end of the client's process as the lab saw it (`outcome.json`).

    `elapsed_ns` is from the client's start to its end. `received_bytes` and `sent_bytes` are each
    device's bytes, headers included. `output_bytes` is the size of the client's output file, None
    if there is none. `output_sha256` is its SHA-256, None also if the lab does not check it.
    `uploaded_sha256` is the SHA-256 of the file that the server received, None if it received none.
    `shaper` is what held the links' rates: "link", exact for each packet, or "hfsc".
    """

    exit_code: ExitCode
    elapsed_ns: Nanoseconds
    received_bytes: ByName[Bytes]
    output_bytes: Bytes | None
    sent_bytes: ByName[Bytes] = {}
    output_sha256: Name | None = None
    uploaded_sha256: Name | None = None
    shaper: Name = ""


def write(outcome: Outcome, run_dir: Path) -> None:
    """Writes the outcome."""
    plain_file.write(run_dir / FILE, msgspec.json.encode(outcome) + b"\n")


def read(run_dir: Path) -> Outcome:
    """Reads the outcome. Raises OSError, RecordError."""
    return records.document(run_dir / FILE, Outcome)


def write_error(error: str, run_dir: Path) -> None:
    """Writes why the lab failed, in place of an outcome."""
    plain_file.write(run_dir / _ERROR, f"{error}\n".encode())


def read_error(run_dir: Path) -> str:
    """Returns why the lab failed. Raises OSError if there is no such file."""
    with plain_file.opened(run_dir / _ERROR) as file:
        return file.read(_ERROR_BYTES).decode(errors="replace").strip()


def missing(run_dir: Path) -> str:
    """Returns why there is no outcome. Raises OSError if the error is no plain file."""
    try:
        return read_error(run_dir)
    except FileNotFoundError:
        return f"the run has not ended, or linklab was killed: {run_dir} has no {FILE}"


def noted(run_dir: Path) -> list[bytes]:
    """Returns the raw contents of both files that exist, none while the run goes on. Raises
    OSError."""
    paths = [run_dir / name for name in (FILE, _ERROR)]
    return [plain_file.read(path) for path in paths if os.path.lexists(path)]
