"""Boots the guest on a run directory and waits for it.

The guest is one unprivileged program, pinned to one core. Two processes that move between cores
would be three times slower. It is confined (confinement.py): it sees most of the host's files, and
can write the run directory, which is its working directory.

The kernel command line seeds the guest's random numbers. So it holds nothing that differs between
machines.
"""

from __future__ import annotations

import compileall
import contextlib
import functools
import itertools
import mmap
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from linklab.core import locks
from linklab.core.error_report import report_error
from linklab.core.frames import FRAME_BYTES, PACKET_MEMORY_BYTES
from linklab.core.paths import PYTHON_PATH, in_cache
from linklab.core.scratch import scratch_prefix
from linklab.places.guest import (
    bundle,
    confinement,
    ending,
    gateway,
    image,
    standstill,
    system_calls,
)
from linklab.places.guest.ending import GuestError

BASE_MEMORY_BYTES = 768 << 20
"""A guest's memory for programs and page cache, without the downloaded file."""

_QUEUES_BYTES: Final = BASE_MEMORY_BYTES // 2
"""The part of it for queued packets. Queues up to this size do not change a guest's memory. That
matters, because the kernel's TCP limits, and so the figures, follow from the memory."""

START_NS = 1_767_225_600_000_000_000
"""The guest's clock at boot in virtual time: 2026-01-01 00:00 UTC."""

ROOT_DESCRIPTOR = 9
"""The descriptor of UML's root. The image's path differs between machines, so it may not stand on
the command line."""

_ELSEWHERE = (
    "set TMPDIR to a directory (in a container: --tmpfs /tmp:exec,size=2g), "
    "or ask for less `payload` or `queue`"
)
_HARDENED = "run linklab outside a service with MemoryDenyWriteExecute, and with SELinux as an unconfined user"

_SCRIPT = "/run/linklab/run/guest-init.py"

_FIND_SCRIPT = (
    "import ctypes,os;"
    "m=ctypes.CDLL(None).mount;"
    "m(b'tmpfs',b'/run',b'tmpfs',0,b'size=95%');"
    "os.makedirs('/run/linklab/run');"
    "m(b'none',b'/run/linklab/run',b'hostfs',0,b'/proc/self/cwd');"
    f"exec(compile(open('{_SCRIPT}').read(),'{_SCRIPT}','exec'))"
)
"""Mounts a tmpfs at /run and the run directory inside it, then runs the script found there."""


@functools.cache
def _modules(root: Path, session: str) -> Path | None:
    """Returns the bundle of this package's modules for the Python of the image at `root`.

    If no bundle can be made and this is the same Python, it compiles the modules instead. The guest
    cannot write the compiled files, so it would compile them at every boot.
    """
    modules = bundle.ensure(root, session)
    if modules is None and sys.implementation.cache_tag == image.CACHE_TAG:
        compileall.compile_dir(PYTHON_PATH / "linklab", quiet=2)
    return modules


@functools.cache
def _say_what_is_not_confined() -> None:
    """Warns once per process if the guest is not confined."""
    fence = confinement.fence()
    if fence.name == "none":
        report_error(f"THE GUEST IS {fence.words}")


def memory_bytes(payload_bytes: int, *, uploaded: bool = False, held_bytes: int = 0) -> int:
    """Returns a guest's memory for a payload, whose file lies in a tmpfs. Memory is taken when used.

    Of an upload H2O holds the received bytes, mruby's copy and the file. A small upload fits into
    the base memory. So do queued packets, unless the links hold very many (`held_bytes`).
    """
    needed = 3 * payload_bytes - BASE_MEMORY_BYTES // 4 if uploaded else 0
    queued = held_bytes * PACKET_MEMORY_BYTES // FRAME_BYTES - _QUEUES_BYTES
    return BASE_MEMORY_BYTES + max(payload_bytes, needed) + max(0, queued)


def catching() -> str:
    """Returns how the guest's programs call its kernel: `auto` or `off`, for UML's `seccomp=`.

    `auto` uses seccomp filters if the host allows them, which is faster. `off` uses ptrace. The
    runs are the same to the byte. With seccomp a program in the guest can write the guest's kernel,
    which is a program of the user's. So an unconfined guest uses ptrace. Raises GuestError if this
    machine refuses it.
    """
    if confinement.fence().name != "none":
        return "auto"
    if system_calls.allows_ptrace():
        return "off"
    raise GuestError(
        "a guest that is not confined needs ptrace, which this machine refuses; "
        "--processor emulated needs none"
    )


def kernel_arguments(
    clock: str,
    seed: int,
    memory: int,
    channel: int | None = None,
    device: int | None = None,
    calls: str | None = None,
) -> list[str]:
    """Returns the kernel command line.

    `clock` is `virtual` or `real`, `memory` is in bytes. The descriptor `channel` becomes /dev/tty1,
    `device` the network outside (gateway.py). `calls` is by default `catching()`. UML
    removes `seccomp=` before it seeds its random numbers. Raises GuestError for a network outside in
    virtual time, and if UML cannot catch system calls safely.
    """
    if device is not None and clock == "virtual":
        raise GuestError("there is no way outside in virtual time")
    travel = ["time-travel=inf-cpu", f"time-travel-start={START_NS}"]
    return [
        f"mem={memory >> 20}M",
        "rootfstype=hostfs",
        f"rootflags=/proc/self/fd/{ROOT_DESCRIPTOR}",
        *("ro", "quiet", "panic=-1", "con=null", "con0=null,fd:1"),
        *([] if channel is None else [f"con1=fd:{channel}"]),
        *([] if device is None else [gateway.kernel_argument(device)]),
        f"seccomp={calls or catching()}",
        f"linklab.seed={seed}",
        *(travel if clock == "virtual" else []),
        "PYTHONHASHSEED=0",
        f"init={image.PYTHON}",
        "--",
        *("-S", "-P", "-B", "-W", "ignore", "-c"),
        f'"{_FIND_SCRIPT}"',
    ]


def _with_root(root: Path, program: Sequence[str]) -> list[str]:
    """Returns a command that runs `program` with `root` open as a descriptor.

    The command must run inside the confinement. A directory opened outside leads out of it.
    """
    return ["sh", "-c", f'exec {ROOT_DESCRIPTOR}<"$0" && exec "$@"', str(root), *program]


def _guest_init(session: str, modules: Path | None) -> str:
    """Returns the guest's first program: init.py, and a call of `main` of the module `session`.

    `modules` is the bundle of the package's modules.
    """
    execute = (str(PYTHON_PATH / "linklab"), session, modules and str(modules))
    return "\n".join(
        [
            (Path(__file__).parent / "init.py").read_text(),
            "take_pages_at_once()",
            "mount_all()",
            f"name_user({os.getuid()}, {os.getgid()})",
            f"execute(*{execute!a})\n",
        ]
    )


def write_first_program(run_dir: Path, root: Path, session: str) -> None:
    """Writes the guest's first program, for the image at `root`, into the run directory."""
    (run_dir / "guest-init.py").write_text(_guest_init(session, _modules(root, session)))


_without_lock = itertools.count()


def reserve_core() -> tuple[int, IO[str] | None]:
    """Returns a core that no other guest of this user has, and the lock that reserves it.

    If all cores are taken, it returns each core in turn, without a lock.
    """
    cores = sorted(os.sched_getaffinity(0))
    directory = in_cache("cores")
    directory.mkdir(parents=True, exist_ok=True)
    for core in cores:
        lock = (directory / str(core)).open("w")
        if locks.try_to_take(lock):
            return core, lock
        lock.close()
    return cores[next(_without_lock) % len(cores)], None


def _maps_executable(directory: str) -> bool:
    """Tells whether this process may map a file of `directory` as UML maps its memory."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.truncate(mmap.PAGESIZE)
            everything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=everything).close()
    except OSError:
        return False
    return True


def memory_directory(needed: int = BASE_MEMORY_BYTES) -> Path:
    """Returns a directory for the guest's memory file, in RAM if possible.

    UML maps its memory as executable. So noexec mounts (Docker's /dev/shm) are left out, and it is
    tried whether this system allows it. Raises GuestError if no directory has `needed` bytes free.
    """
    refused, advice = [], _ELSEWHERE
    for candidate in dict.fromkeys((os.environ.get("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp")):
        if not candidate or not os.access(candidate, os.W_OK):
            continue
        status = os.statvfs(candidate)
        if status.f_flag & os.ST_NOEXEC:
            refused.append(f"{candidate} forbids execution")
        elif status.f_bavail * status.f_frsize < needed:
            refused.append(f"{candidate} has less than {needed >> 20} MiB free")
        elif not _maps_executable(candidate):
            refused.append(f"{candidate} may not be written and executed at once")
            advice = _HARDENED
        else:
            return Path(candidate).absolute()  # The guest has another working directory.
    raise GuestError(
        f"nowhere to keep the guest's memory of {needed >> 20} MiB, for programs, payload and full "
        f"queues ({', '.join(refused) or 'nothing is writable'}): {advice}"
    )


def side_by_side(memory: int) -> int:
    """Returns how many guests with `memory` bytes each fit at the same time; at least one."""
    status = os.statvfs(memory_directory(memory))
    return max(1, status.f_bavail * status.f_frsize // memory)


def _device(stack: contextlib.ExitStack, way: gateway.Way | None) -> int | None:
    """Returns the descriptor of the guest's network device, open until the stack closes; or None."""
    if way is None:
        return None
    return stack.enter_context(contextlib.closing(gateway.Gateway(way))).device


class Guest:
    """A guest that boots or runs on a prepared run directory; a context manager.

    The guest starts with `main` of the module `session`, on the core `core`. Of homes and secrets
    it sees only `needed`. `fileno` becomes readable when the guest has ended. `close` ends it. It
    also removes the guest's files outside the run directory, and unsafe files inside it.
    """

    def __init__(
        self,
        kernel: Path,
        root: Path,
        run_dir: Path,
        *,
        clock: str,
        seed: int,
        memory: int,
        timeout_s: float,
        session: str,
        channel: int | None = None,
        way: gateway.Way | None = None,
        needed: Sequence[Path] = (),
    ) -> None:
        self.run_dir = self.growing_dir = run_dir
        self.needed = needed
        self._console = run_dir / ending.CONSOLE
        self._memory = memory
        self._timeout_s = timeout_s
        self._clock = clock
        self._watch: standstill.Watch | None = None
        self._broken = ""
        self.deadline = time.monotonic() + timeout_s
        write_first_program(run_dir, root, session)
        _say_what_is_not_confined()
        with contextlib.ExitStack() as stack:
            scratch = tempfile.mkdtemp(prefix=scratch_prefix("guest"), dir=memory_directory(memory))
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            device = _device(stack, way)
            self.core, lock = reserve_core()
            if lock is not None:
                stack.callback(lock.close)
            # Every process of the guest holds the other end. The pipe closes when all have ended.
            self._alive, inherited = os.pipe()
            stack.callback(os.close, self._alive)
            with self._console.open("wb") as log, os.fdopen(inherited, "wb"):
                self._process = subprocess.Popen(
                    [
                        *("setpriv", "--pdeathsig", "KILL", "taskset", "--cpu-list"),
                        str(self.core),
                        *confinement.confined(
                            _with_root(
                                root,
                                [
                                    str(kernel),
                                    *kernel_arguments(clock, seed, memory, channel, device),
                                ],
                            ),
                            run_dir,
                            Path(scratch),
                            kernel,
                            root,
                            *needed,
                        ),
                    ],
                    cwd=run_dir,
                    pass_fds=[inherited, *(one for one in (channel, device) if one is not None)],
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={
                        "HOME": scratch,
                        "TMPDIR": scratch,
                        "PATH": os.environ.get("PATH", os.defpath),
                    },
                )
            stack.callback(self._settle)
            self._descriptor = os.pidfd_open(self._process.pid)
            stack.callback(os.close, self._descriptor)
            if clock == "virtual":
                self._watch = standstill.Watch(self._process.pid, report_error)
                stack.callback(self._watch.close)
            self._resources = stack.pop_all()

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Returns a descriptor that is readable once the guest has ended."""
        return self._descriptor

    def close(self) -> None:
        self._resources.close()

    def _settle(self) -> None:
        """Ends all processes of the guest, and removes unsafe files from the run directory."""
        if self._process.poll() is None:
            # The whole group, because a bubblewrap that has just started ends without its child.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        select.select([self._alive], [], [])
        self._broken = ending.tidy(self.run_dir)

    def exit_code(self) -> int:
        """Returns the execution's exit code.

        Raises GuestError if the guest hung, failed earlier, or ran out of memory.
        """
        if self._process.poll() is None:
            seen = "" if self._watch is None else self._watch.seen
            raise GuestError(ending.hung(self._timeout_s, self._console, self._clock, seen))
        self._settle()
        if self._broken:
            raise GuestError(self._broken)
        return ending.exit_code(self.run_dir, self._memory)
