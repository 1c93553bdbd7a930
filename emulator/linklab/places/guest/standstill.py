"""Finds a program of the guest that computes for long without a system call.

Virtual time stands meanwhile. If the program looks at memory until another one changes it, it hangs:
the other one waits for the clock. From outside, waiting so and computing look the same. So linklab
only says what it sees.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

PATIENCE_S: Final = 10.0
"""The wall's time without a system call after which linklab says so."""

_LOOK_S: Final = 2.0
_BUSY: Final = 0.1
"""The least share of a core that counts as computing. On a busy machine a program gets little."""
_USERSPACE: Final = "uml-userspace"
"""The name of the host's process for a process of the guest (arch/um/kernel/skas/stub_exe.c)."""


class Watch:
    """Looks at a guest until it is closed, and calls `say` once if a program makes virtual time
    stand. `pid` is the guest's first process."""

    def __init__(self, pid: int, say: Callable[[str], None]) -> None:
        self._pid = pid
        self._say = say
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.seen = ""
        """What is to be said now, "" if no program makes virtual time stand."""
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _look(self) -> None:
        if self._closing.wait(PATIENCE_S):
            return
        since: dict[tuple[int, int], tuple[float, float]] = {}
        is_said, passed_s = False, 0.0
        while not self._closing.wait(_LOOK_S):
            passed_s += _LOOK_S
            before, since, self.seen = since, {}, ""
            for pid, switches, spent_s in _programs(self._pid):
                begun_s, then_s = before.get((pid, switches), (passed_s, spent_s))
                since[pid, switches] = begun_s, then_s
                long_s = passed_s - begun_s
                if long_s >= PATIENCE_S and spent_s - then_s >= _BUSY * long_s:
                    self.seen = (
                        f"a program of the guest computes for over {PATIENCE_S:.0f} s without a system "
                        "call, and virtual time stands; if it waits for memory to change: --clock real"
                    )
            if self.seen and not is_said:
                is_said = True
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
