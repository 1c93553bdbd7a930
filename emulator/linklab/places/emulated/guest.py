"""Runs a guest in an emulated machine.

The guest is the same as on this machine's own processor: kernel, command line, image, and the files
that it sees. So its figures are the same. The run directory goes to the machine's desk and comes
back. A guest in virtual time needs nothing else of this machine.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from linklab.places.emulated import machine as machines
from linklab.places.emulated import qemu
from linklab.places.guest import boot, ending
from linklab.places.guest.ending import GuestError

_CALLS: Final = "auto"
"""How the guest's programs call its kernel in a machine (boot.catching)."""

_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"


class EmulatedGuest:
    """A guest in an emulated machine; with the methods of `boot.Guest`.

    `machine_kernel` is the kernel of the machine. It has no network outside and no terminal.
    """

    def __init__(
        self,
        machine_kernel: Path,
        kernel: Path,
        root: Path,
        run_dir: Path,
        *,
        seed: int,
        memory: int,
        timeout_s: float,
        session: str,
        needed: Sequence[Path] = (),
    ) -> None:
        self.run_dir = run_dir
        self.needed = needed
        self._memory = memory
        self._timeout_s = timeout_s
        self._broken = ""
        self._has_ended = False
        self._is_usable = False
        self.deadline = time.monotonic() + timeout_s
        boot.write_first_program(run_dir, root, session)
        (run_dir / ending.CONSOLE).touch()
        with contextlib.ExitStack() as stack:
            self._machine = machines.take(
                qemu.find(), machine_kernel, root, memory, [*needed, kernel]
            )
            stack.callback(self._leave)
            self.core = self._machine.core
            self._desk = self.growing_dir = self._machine.desk / "run"
            shutil.copytree(run_dir, self._desk)
            words = [
                str(self._machine.desk),
                str(root),
                str(self._machine.memory_mount),
                *_as_user(root),
                str(kernel),
                *boot.kernel_arguments("virtual", seed, memory, calls=_CALLS),
            ]
            self._machine.start(f"job {shlex.join(words)}\n")
            self._resources = stack.pop_all()

    def __enter__(self) -> EmulatedGuest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Returns a descriptor that is readable once the guest has ended."""
        return self._machine.fileno()

    def close(self) -> None:
        self._resources.close()

    def exit_code(self) -> int:
        """Returns the execution's exit code.

        Raises GuestError if guest or machine hung, failed earlier, or ran out of memory.
        """
        if not self._has_ended and not select.select([self._machine], [], [], 0)[0]:
            raise GuestError(ending.hung(self._timeout_s, self.run_dir / ending.CONSOLE))
        self._settle()
        if self._broken:
            raise GuestError(self._broken)
        return ending.exit_code(self.run_dir, self._memory)

    def _settle(self) -> None:
        """Takes the run directory from the desk, without unsafe files."""
        if self._has_ended:
            return
        self._has_ended = True
        if select.select([self._machine], [], [], 0)[0]:
            self._broken = self._machine.ended()
            self._is_usable = not self._broken
        if not self._is_usable:
            self._machine.end()
        try:
            self._broken = self._broken or ending.tidy(self._desk)
            shutil.copytree(self._desk, self.run_dir, dirs_exist_ok=True)
            shutil.rmtree(self._desk)
        except (OSError, shutil.Error) as error:
            self._broken = f"the guest's files cannot be brought back: {error}"

    def _leave(self) -> None:
        self._settle()
        if self._is_usable:
            machines.give_back(self._machine)
        else:
            self._machine.close()


def _as_user(root: Path) -> list[str]:
    """Returns a command of the image that runs a program as this user, without further rights."""
    libraries = root / _LIBRARIES
    setpriv = [
        str(libraries / "ld-linux-x86-64.so.2"),
        *("--library-path", str(libraries), str(root / "usr/bin/setpriv")),
    ]
    drop = [*setpriv, "--no-new-privs", "--bounding-set", "-all"]
    if os.geteuid() == 0:
        # In two steps: what is not in the bounding set cannot be kept.
        keep = "-all,+dac_read_search"
        return [*setpriv, "--inh-caps", keep, "--ambient-caps", keep, "--", *drop, "--"]
    groups = ",".join(map(str, os.getgroups())) or str(os.getegid())
    ids = ["--reuid", str(os.geteuid()), "--regid", str(os.getegid()), "--groups", groups]
    return [*drop, "--inh-caps", "-all", *ids, "--"]
