"""Finds a program of the guest that computes for long without a system call.

Virtual time stands meanwhile. If the program looks at memory until another one changes it, it hangs:
the other one waits for the clock. From outside, waiting so and computing look the same. So linklab
only says what it sees.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from linklab.core.printable import printable

PATIENCE_S: Final = 10.0
"""The wall's time without a system call after which linklab says so."""

_LOOK_S: Final = 2.0
_BUSY: Final = 0.1
"""The least share of a core that counts as computing. On a busy machine a program gets little."""
_USERSPACE: Final = "uml-userspace"
"""The name of the host's process for a process of the guest (arch/um/kernel/skas/stub_exe.c)."""
_TOP: Final = 0x7FFF_FFFF_0000
"""Above it there are no pages of the guest's program."""
_STACK_BYTES: Final = 1 << 17
"""How much of a stack is read. A longer environment leaves the program without a name."""
_MOST_CHARACTERS: Final = 200
_PROCESSOR: Final = b"x86_64"
_VARIABLE: Final = re.compile(rb"\w+=")


class Watch:
    """Looks at a guest until it is closed, and calls `say` once about each program that makes virtual
    time stand. `pid` is the guest's first process."""

    def __init__(self, pid: int, say: Callable[[str], None]) -> None:
        self._pid = pid
        self._say = say
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.seen = ""
        """What is to be said now, "" if no program makes virtual time stand."""
        self._thread.start()

    def close(self) -> None:
        """Ends the looks."""
        self._closing.set()
        self._thread.join()

    def _look(self) -> None:
        if self._closing.wait(PATIENCE_S):
            return
        since: dict[tuple[int, int], tuple[float, float]] = {}
        said: set[int] = set()
        passed_s = 0.0
        while not self._closing.wait(_LOOK_S):
            passed_s += _LOOK_S
            before, since, self.seen = since, {}, ""
            for pid, switches, spent_s in _programs(self._pid):
                begun_s, then_s = before.get((pid, switches), (passed_s, spent_s))
                since[pid, switches] = begun_s, then_s
                long_s = passed_s - begun_s
                if long_s >= PATIENCE_S and spent_s - then_s >= _BUSY * long_s:
                    self.seen = sentence(command_of(pid))
                    if pid not in said:
                        said.add(pid)
                        self._say(self.seen)


def _programs(guest_pid: int) -> Iterator[tuple[int, int, float]]:
    """Yields the guest's processes: number, changes to another process, and processor time in s. Each
    system call is such a change."""
    import psutil  # Slow to load, and most runs are shorter.

    with contextlib.suppress(psutil.Error):
        for one in psutil.Process(guest_pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if one.name() == _USERSPACE:
                    yield one.pid, one.num_ctx_switches().voluntary, one.cpu_times().user


def sentence(command: str) -> str:
    """Returns what to say about a program."""
    return (
        f"{command} computes for over {PATIENCE_S:.0f} s without a system call, and virtual time stands; "
        "if it waits for memory to change: --clock real"
    )


def command_of(pid: int) -> str:
    """Returns the command line of a process of the guest from the top of its stack, where the kernel
    wrote it (fs/exec.c, fs/binfmt_elf.c). "a program" if it has overwritten it."""
    with contextlib.suppress(OSError, ValueError), Path(f"/proc/{pid}/mem").open("rb") as memory:
        for start, end in _written(pid):
            memory.seek(max(start, end - _STACK_BYTES))
            if found := command(memory.read(end - memory.tell())):
                return found
    return "a program"


def _written(pid: int) -> Iterator[tuple[int, int]]:
    """Yields the ranges of writable pages, the highest first."""
    found: list[tuple[int, int]] = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        addresses, rights = line.split()[:2]
        start, end = (int(one, 16) for one in addresses.split("-"))
        if "w" in rights and end <= _TOP:
            if found and found[-1][1] == start:
                start, _ = found.pop()
            found.append((start, end))
    return reversed(found)


def command(stack: bytes) -> str:
    """Returns the command line at the top of a stack, "" if there is none. Above it there are the
    environment, the program's file and eight bytes of 0. Below it there is the processor's name."""
    *words, _file = stack.removesuffix(bytes(9)).split(b"\0")
    while words and _VARIABLE.match(words[-1]):
        words.pop()
    starts = [number for number, one in enumerate(words) if one.endswith(_PROCESSOR)]
    if not stack.endswith(bytes(9)) or not starts:
        return ""
    found = shlex.join(one.decode(errors="replace") for one in words[starts[-1] + 1 :])
    return printable(found, keep="")[:_MOST_CHARACTERS]  # A program may write there what it likes.
