"""What the lab noted of a run's end: `outcome.json` of a run directory, or `error`."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from linklab.core import plain_file, records
from linklab.core.bounded import ByName, Bytes, ExitCode, Name, Nanoseconds

FILE, _ERROR = "outcome.json", "error"

_ERROR_BYTES = 65536
"""How much is read of an error, however large a program in the lab made it."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome.json`: how the client's process went, as the lab saw it.

    `elapsed_ns` is from the client's start to its end; `received_bytes` and `sent_bytes` are what
    each of its devices took in and sent, headers included; `output_bytes` the size of the file that
    it was to write, None where there is none; `output_sha256` its SHA-256, None too where that is not
    for the lab to check; `uploaded_sha256` the SHA-256 of what the server got of it, None where it
    got no file.
    """

    exit_code: ExitCode
    elapsed_ns: Nanoseconds
    received_bytes: ByName[Bytes]
    output_bytes: Bytes | None
    sent_bytes: ByName[Bytes] = {}
    output_sha256: Name | None = None
    uploaded_sha256: Name | None = None


def write(outcome: Outcome, run_dir: Path) -> None:
    """Notes how the client's process went."""
    plain_file.write(run_dir / FILE, msgspec.json.encode(outcome) + b"\n")


def read(run_dir: Path) -> Outcome:
    """What the lab noted of the client's process. Raises OSError, RecordError."""
    return records.document(run_dir / FILE, Outcome)


def write_error(error: str, run_dir: Path) -> None:
    """Notes why the lab failed, so that there is no outcome."""
    (run_dir / _ERROR).write_text(f"{error}\n")


def read_error(run_dir: Path) -> str:
    """Why the lab failed. Raises OSError where that is not noted."""
    with plain_file.opened(run_dir / _ERROR) as file:
        return file.read(_ERROR_BYTES).decode(errors="replace").strip()


def noted(run_dir: Path) -> list[bytes]:
    """What was noted, as it is written; nothing of a run that goes on. Raises OSError."""
    paths = [run_dir / name for name in (FILE, _ERROR)]
    return [plain_file.read(path) for path in paths if os.path.lexists(path)]
