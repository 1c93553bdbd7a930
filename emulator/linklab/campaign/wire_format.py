"""What travels between the submitting machine and a worker: a run that is wanted, and its
directory when it has ended. Bytes both ways, because they may share no file."""

from __future__ import annotations

import os
import stat
import tempfile
import zlib
from pathlib import Path, PurePosixPath

import msgspec

from linklab.core import plain_file
from linklab.lab.network.services import OwnServer
from linklab.runs import job, run_energy
from linklab.runs.runner import RunRequest
from linklab.scenario import to_yaml
from linklab.scenario.trace_files import with_trace_files

_MOST_BYTES = 1 << 30
"""How much a run directory that travels may hold."""


class ParcelError(RuntimeError):
    """A parcel that is not what linklab sends."""


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is wanted. `scenario` is its canonical YAML, `traces` are the files that it
    names, `energy` is the text of the energy model, if any; `machine` is what a worker must be like (`machine.py`)."""

    scenario: str
    energy: str | None
    traces: dict[str, bytes]
    contestant: str | None
    name: str | None
    command: tuple[str, ...] | None
    server: OwnServer | None
    beside: str | None
    seed: int
    shift_s: float
    timeout_s: float | None
    machine: dict[str, str]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run. `failure` says why there are no figures; `again` that another try may
    bring them, because the lab failed and not what was tested. `files` is the run directory."""

    failure: str | None
    again: bool
    wall_s: float
    files: bytes


def wrap(request: RunRequest, timeout_s: float | None, machine: dict[str, str]) -> Parcel:
    """The request with everything that it needs of this machine's files."""
    traces: dict[str, bytes] = {}

    def sent(link: str, file: Path) -> Path:
        traces[f"{link}/{file.name}"] = file.read_bytes()
        return Path(link, file.name)

    scenario = with_trace_files(request.scenario, sent)
    return Parcel(
        scenario=to_yaml(scenario),
        energy=request.energy or run_energy.model_for(request.scenario),
        traces=traces,
        contestant=request.contestant,
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
    """The request again, its files in `directory`. Raises ScenarioError, ParcelError."""
    for name, content in parcel.traces.items():
        _write(directory, name, content)
    (directory / job.SCENARIO_FILE).write_text(parcel.scenario, encoding="utf-8")
    return RunRequest(
        job.scenario_of(directory),
        parcel.contestant,
        parcel.seed,
        command=parcel.command,
        server=parcel.server,
        beside=parcel.beside,
        shift_s=parcel.shift_s,
        name=parcel.name,
        energy=parcel.energy,
    )


def pack(directory: Path) -> bytes:
    """Every plain file below a directory, compressed. Raises OSError, also where they are too large."""
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
    """Makes `directory` of what `pack` made, whole or not at all: it must not be there.

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
"""What a directory is called while its files are written."""


def _write(directory: Path, name: str, content: bytes) -> None:
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or not relative.parts:
        raise ParcelError(f"{name!r} is no file of a run directory")
    path = directory / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    plain_file.write(path, content)
