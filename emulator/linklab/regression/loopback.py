"""What a client costs the processor and memory: downloads from H2O over the loopback device.

Virtual time does not see that, so this is the real clock, with TLS, and files in memory where
there is room. Processor time is that of the client alone.
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

from linklab.core.scratch import scratch_prefix
from linklab.lab.programs import authority
from linklab.lab.programs.h2o import configuration

ADDRESS = "127.0.0.1"
_IN_MEMORY = Path("/dev/shm")
_LOOK_S = 0.01
"""How often the memory of a running program is looked at."""


class LoopbackError(RuntimeError):
    """A download over loopback that did not succeed; the message says why."""


@dataclass(frozen=True)
class Cost:
    """What one download took."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


@dataclass(frozen=True)
class LoopbackServer:
    """An H2O on the loopback device. Files in `files` are served; `ca` has signed it."""

    port: int
    ca: Path
    files: Path

    def url(self, name: str) -> str:
        """Where a file is to be had."""
        return f"https://{ADDRESS}:{self.port}/{name}"


def measure(argv: Sequence[object], size: int, output: Path, limit_s: float | None = None) -> Cost:
    """Runs a program that writes `size` bytes to `output`, which is removed.

    LoopbackError if it does not, or not within `limit_s` seconds.
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
    """Waits for the process. Its `ru_maxrss` would begin with what Python had at the fork."""
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
    """The most memory that a process has had resident, 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def sparse(path: Path, size: int) -> None:
    """A file of zeros that takes no room."""
    with path.open("wb") as file:
        file.truncate(size)


@contextlib.contextmanager
def room(size: int, fallback: Path | None = None) -> Iterator[Path]:
    """A directory for a file of `size`: in memory if that leaves as much again, else on disk,
    in `fallback`."""
    enough = _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free > 2 * size
    with tempfile.TemporaryDirectory(
        prefix=scratch_prefix("loopback"), dir=_IN_MEMORY if enough else fallback
    ) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[LoopbackServer]:
    """H2O as the lab has it, on the loopback device; what it needs lies in `directory`."""
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
    with log.open("ab") as output:
        argv = ["setpriv", "--pdeathsig", "KILL", "h2o", "-m", "worker", "-c", str(conf)]
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 10
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise LoopbackError(f"H2O does not listen: {log.read_text()[-500:]}")
            time.sleep(0.01)
        yield LoopbackServer(port, made.ca_cert, files)
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0
