"""Encodes what the submitting machine and a worker exchange: a requested run, and its directory.

Both are bytes, because the machines may share no files.
"""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from linklab.core import plain_file
from linklab.core.errors import LinklabError
from linklab.lab.network.services import OwnServer
from linklab.runs import job, run_energy
from linklab.runs.runner import RunRequest
from linklab.scenario import to_yaml
from linklab.scenario.named_files import with_files

_MOST_BYTES = 1 << 30
"""The largest size of a run directory in a reply."""


class ParcelError(LinklabError, RuntimeError):
    """The parcel has content that linklab does not send."""


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A requested run.

    Attributes:
        scenario: canonical YAML.
        energy: text of the energy model, if any.
        traces: content of the files that the scenario names.
        machine: required versions and hashes of a worker's machine (`machine.py`).
    """

    scenario: str
    energy: str | None
    traces: dict[str, bytes]
    client: str | None
    name: str | None
    command: tuple[str, ...] | None
    server: OwnServer | None
    beside: str | None
    seed: int
    shift_s: float
    timeout_s: float | None
    machine: dict[str, str]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    Attributes:
        failure: why there are no figures.
        again: the lab failed, not the client, so another try may succeed.
        files: the packed run directory.
    """

    failure: str | None
    again: bool
    wall_s: float
    files: bytes


_LENGTH = struct.Struct(">Q")


def send(file: IO[bytes], message: bytes) -> None:
    """Writes a message to a pipe. Raises OSError."""
    file.write(_LENGTH.pack(len(message)) + message)
    file.flush()


def receive(file: IO[bytes]) -> bytes | None:
    """Reads a message from a pipe; None if the other side closed it."""
    length = file.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(length)
    message = file.read(size)
    return message if len(message) == size else None


def wrap(request: RunRequest, timeout_s: float | None, machine: dict[str, str]) -> Parcel:
    """Makes a parcel of a request with the files that it needs."""
    traces: dict[str, bytes] = {}

    def sent(owner: str, file: Path) -> Path:
        traces[f"{owner}/{file.name}"] = file.read_bytes()
        return Path(owner, file.name)

    scenario = with_files(request.scenario, sent)
    return Parcel(
        scenario=to_yaml(scenario),
        energy=request.energy or run_energy.model_for(request.scenario),
        traces=traces,
        client=request.client,
        name=request.name,
        command=request.command,
        server=request.server,
        beside=request.beside,
        seed=request.seed,
        shift_s=request.shift_s,
        timeout_s=timeout_s,
        machine=machine,
    )


def unwrap(parcel: Parcel, directory: Path) -> RunRequest:
    """Makes a request of a parcel, with its files in `directory`.

    Raises ScenarioError, ParcelError.
    """
    for name, content in parcel.traces.items():
        _write(directory, name, content)
    (directory / job.SCENARIO_FILE).write_text(parcel.scenario, encoding="utf-8")
    return RunRequest(
        job.scenario_of(directory),
        parcel.client,
        parcel.seed,
        command=parcel.command,
        server=parcel.server,
        beside=parcel.beside,
        shift_s=parcel.shift_s,
        name=parcel.name,
        energy=parcel.energy,
    )


def pack(directory: Path) -> bytes:
    """Packs and compresses the plain files below a directory. Raises OSError, also above the limit."""
    paths = sorted(
        Path(where, name)
        for where, _, names in os.walk(directory, followlinks=False)
        for name in names
        if stat.S_ISREG(Path(where, name).lstat().st_mode)
    )
    files: dict[str, bytes] = {}
    left = _MOST_BYTES
    for path in paths:
        files[path.relative_to(directory).as_posix()] = content = plain_file.read(path, left)
        left -= len(content)
    return zlib.compress(msgspec.msgpack.encode(files))


def unpack(packed: bytes, directory: Path) -> None:
    """Unpacks what `pack` made into the new `directory`, completely or not at all.

    Raises ParcelError.
    """
    try:
        unpacked = zlib.decompressobj().decompress(packed, 2 * _MOST_BYTES)
        files = msgspec.msgpack.decode(unpacked, type=dict[str, bytes])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ParcelError(f"{directory.name}: what came back is damaged: {error}") from error
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=PART_PREFIX, dir=directory.parent) as temporary:
        made = Path(temporary, directory.name)
        made.mkdir()
        for name, content in files.items():
            _write(made, name, content)
        made.rename(directory)


PART_PREFIX = ".arriving-"
"""The prefix of a directory's name while its files are written."""


def _write(directory: Path, name: str, content: bytes) -> None:
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or not relative.parts:
        raise ParcelError(f"{name!r} is no file of a run directory")
    path = directory / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    plain_file.write(path, content)
