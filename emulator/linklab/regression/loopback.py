"""Measures a client's processor time and memory by downloads from H2O over the loopback device.

It uses the real clock, because virtual time does not count them. Downloads use TLS. Files are in
memory if there is space. Only the client's processor time counts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from linklab.core.errors import LinklabError
from linklab.core.scratch import scratch_prefix
from linklab.lab.programs import authority
from linklab.lab.programs.h2o import configuration

ADDRESS = "127.0.0.1"
_IN_MEMORY = Path("/dev/shm")
_LOOK_S = 0.01
"""The sampling interval of a running program's memory."""


class LoopbackError(LinklabError, RuntimeError):
    """A download over loopback failed. The message says why."""


@dataclass(frozen=True)
class Cost:
    """The cost of one download."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


@dataclass(frozen=True)
class LoopbackServer:
    """An H2O on the loopback device that serves `files`, with a certificate signed by `ca`."""

    port: int
    ca: Path
    files: Path

    def url(self, name: str) -> str:
        """Returns the URL of a file."""
        return f"https://{ADDRESS}:{self.port}/{name}"


def measure(argv: Sequence[object], size: int, output: Path, limit_s: float | None = None) -> Cost:
    """Runs a program that writes `size` bytes to `output`, and removes the output.

    Raises LoopbackError if it writes something else, or takes longer than `limit_s` seconds.
    """
    output.unlink(missing_ok=True)
    begun = time.monotonic()
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                [*map(str, argv)], stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        except OSError as error:
            raise LoopbackError(f"{argv[0]}: {error.strerror}") from error
        try:
            cost = reap(process, begun, limit_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        said.seek(0)
        words = said.read().decode(errors="replace").strip().splitlines()
    if process.returncode != 0:
        why = words[-1] if words else "it said nothing"
        raise LoopbackError(f"{argv[0]} ended with {process.returncode}: {why}")
    arrived = output.stat().st_size if output.exists() else 0
    if arrived != size:
        raise LoopbackError(f"{argv[0]} wrote {arrived} bytes instead of {size}")
    output.unlink()
    return cost


def reap(process: subprocess.Popen[bytes], begun: float, limit_s: float | None = None) -> Cost:
    """Waits for a process and returns its cost.

    Memory is sampled, because `ru_maxrss` would include Python's memory at the fork.
    """
    peak = 0
    while True:
        peak = max(peak, peak_bytes(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        wall_s = time.monotonic() - begun
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return Cost(usage.ru_utime + usage.ru_stime, wall_s, peak)
        if limit_s is not None and wall_s > limit_s:
            raise LoopbackError(f"{process.args!r} still ran after {limit_s:.0f} s")
        time.sleep(_LOOK_S)


def peak_bytes(pid: int) -> int:
    """Returns a process's peak resident memory; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def sparse(path: Path, size: int) -> None:
    """Makes a sparse file of zeros."""
    with path.open("wb") as file:
        file.truncate(size)


@contextlib.contextmanager
def room(size: int, fallback: Path | None = None) -> Iterator[Path]:
    """Yields a directory for a file of `size`.

    It is in memory if twice the size is free, else on disk, in `fallback`.
    """
    enough = _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free > 2 * size
    with tempfile.TemporaryDirectory(
        prefix=scratch_prefix("loopback"), dir=_IN_MEMORY if enough else fallback
    ) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[LoopbackServer]:
    """Runs the lab's H2O on the loopback device, with its files in `directory`."""
    files = directory / "files"
    files.mkdir()
    made = authority.ensure(directory / "authority", (ADDRESS,))
    with socket.create_server((ADDRESS, 0)) as probe:
        port = int(probe.getsockname()[1])
    log = directory / "h2o-error.log"
    conf = directory / "h2o.conf"
    conf.write_text(
        configuration(
            (ADDRESS, port),
            made.cert,
            made.key,
            files,
            access_log=directory / "access",
            error_log=log,
            user="nobody" if os.getuid() == 0 else None,
        )
    )
    with listening("H2O", ["h2o", "-m", "worker", "-c", conf], port, log):
        yield LoopbackServer(port, made.ca_cert, files)


@contextlib.contextmanager
def listening(name: str, argv: Sequence[str | Path], port: int, log: Path) -> Iterator[None]:
    """Runs a server, once it listens for TCP on a port of the loopback device. Raises LoopbackError
    with the end of its `log` if it ends before that, or does not listen within 10 s."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *argv], stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + 10
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise LoopbackError(f"{name} does not listen: {log.read_text()[-500:]}")
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0
