"""Boots emulated machines that hold guests, one guest after the other.

A machine is one QEMU, pinned to one core and confined as a guest is (confinement.py): the machine
sees what its guests may see. It has a directory of the host, the desk, where guests find their jobs.
It ends with this process.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from linklab.core.scratch import scratch_prefix
from linklab.places.emulated import qemu
from linklab.places.guest import boot, confinement

_OWN_BYTES: Final = 192 << 20
"""The machine's memory besides its guest's: its kernel, and the files that guests read."""

_SCRIPT: Final = Path(__file__).with_name("machine.sh")

_LAST_WORDS_BYTES: Final = 4096


def memory_bytes(guest: int) -> int:
    """Returns a machine's memory for a guest with `guest` bytes."""
    return guest + _OWN_BYTES


class Machine:
    """A running emulated machine. `fileno` is readable when a job has ended, or the machine.

    `memory` is the most that its guests take, in bytes. Of homes and secrets they see only
    `needed`. `root` is the image. Raises GuestError if there is not enough memory.
    """

    def __init__(
        self, program: qemu.Qemu, kernel: Path, root: Path, memory: int, needed: Sequence[Path]
    ) -> None:
        self.memory = memory
        self.needed = frozenset(needed)
        self.root = root
        whole = memory_bytes(memory)
        with contextlib.ExitStack() as stack:
            scratch = Path(
                tempfile.mkdtemp(prefix=scratch_prefix("guest"), dir=boot.memory_directory(whole))
            )
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            self.core, lock = boot.reserve_core()
            if lock is not None:
                stack.callback(lock.close)
            self.desk = scratch / "desk"
            self.memory_mount = scratch / "memory"
            self._log = scratch / "machine.log"
            for directory in (self.desk, self.memory_mount):
                directory.mkdir()
            shutil.copyfile(_SCRIPT, self.desk / _SCRIPT.stem)
            words = qemu.command(
                program,
                kernel,
                self._log,
                whole,
                scratch,
                {"image-": str(root), "host-": "/", "desk": str(self.desk)},
            )
            # Every process of QEMU holds the other end. The pipe closes when all have ended.
            self._alive, inherited = os.pipe()
            stack.callback(os.close, self._alive)
            with (scratch / "qemu.log").open("wb") as said, os.fdopen(inherited, "wb"):
                self._process = subprocess.Popen(
                    [
                        *("setpriv", "--pdeathsig", "KILL"),
                        *("taskset", "--cpu-list", str(self.core)),
                        *confinement.confined(
                            words, self.desk, scratch, kernel, root, *needed, *_own_files(program)
                        ),
                    ],
                    cwd=self.desk,
                    pass_fds=[inherited],
                    start_new_session=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    env={
                        "HOME": str(scratch),
                        "TMPDIR": str(scratch),
                        "PATH": os.environ.get("PATH", os.defpath),
                    },
                )
            self._said = scratch / "qemu.log"
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._stdin, self._stdout = self._process.stdin, self._process.stdout
            stack.enter_context(self._stdin)
            stack.enter_context(self._stdout)
            stack.callback(self.end)
            self._resources = stack.pop_all()

    def fits(self, root: Path, memory: int, needed: Sequence[Path]) -> bool:
        return (
            self._process.poll() is None
            and (self.root, self.needed) == (root, frozenset(needed))
            and memory <= self.memory
        )

    def start(self, job: str) -> None:
        """Starts a job: lines of shell that `machine.sh` reads."""
        (self.desk / "job.sh").write_text(job)
        with contextlib.suppress(BrokenPipeError):  # `ended` says why.
            os.write(self._stdin.fileno(), b"job\n")

    def ended(self) -> str:
        """Returns nothing if the job has ended well, else why the machine failed.

        To be called when `fileno` is readable.
        """
        if os.read(self.fileno(), 1 << 16).endswith(b"ended\n"):
            return ""
        self.end()
        words = [line for path in (self._said, self._log) for line in _last_lines(path)]
        return "the emulated machine ended early; it said:\n  " + "\n  ".join(
            words or ["(nothing)"]
        )

    def fileno(self) -> int:
        """Returns the descriptor on which the machine says that a job has ended."""
        return self._stdout.fileno()

    def close(self) -> None:
        self._resources.close()

    def end(self) -> None:
        if self._process.poll() is None:
            # The whole group, because a bubblewrap that has just started ends without its child.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        select.select([self._alive], [], [])


def _own_files(program: qemu.Qemu) -> list[Path]:
    """Returns the files of a QEMU that was not installed with the system, such as brew's."""
    prefix = program.path.resolve().parents[1]
    return [] if prefix == Path("/usr") else [program.path, prefix]


def _last_lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_WORDS_BYTES))
        return file.read().decode(errors="replace").replace("\r", "").strip().splitlines()[-5:]
    return []


_idle: list[Machine] = []
_keepers = 0


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keeps machines for the next guest, until the end of the block."""
    global _keepers
    _keepers += 1
    try:
        yield
    finally:
        _keepers -= 1
        while not _keepers and _idle:
            _idle.pop().close()


def take(
    program: qemu.Qemu, kernel: Path, root: Path, memory: int, needed: Sequence[Path]
) -> Machine:
    """Returns a kept machine that fits, else a new one."""
    for machine in list(_idle):
        if machine.fits(root, memory, needed):
            _idle.remove(machine)
            return machine
    while _idle:  # They occupy memory, and cores.
        _idle.pop().close()
    return Machine(program, kernel, root, memory, needed)


def give_back(machine: Machine) -> None:
    """Keeps a machine whose job has ended, or ends the machine."""
    if _keepers:
        _idle.append(machine)
    else:
        machine.close()
