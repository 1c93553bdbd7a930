"""How much time is left on the core that an emulator runs on (proc_stat(5))."""

from __future__ import annotations

from pathlib import Path

FILE = Path("/proc/stat")


def spent(stat: str, core: int | None) -> tuple[int, int]:
    """Clock ticks that a core (None: all together) has been idle, and all ticks so far. Pure.

    Time that a hypervisor gave to others is not idle. ValueError for a core that there is not.
    """
    name = "cpu" if core is None else f"cpu{core}"
    for line in stat.splitlines():
        words = line.split()
        if words[:1] == [name]:
            ticks = [int(word) for word in words[1:9]]  # The rest, guests, is in user and nice.
            return ticks[3] + ticks[4], sum(ticks)
    raise ValueError(f"/proc/stat knows no {name}")


class CoreLoad:
    """The busy share of a core's time from call to call, whoever used it."""

    def __init__(self, core: int | None) -> None:
        self._core = core
        self._before = spent(FILE.read_text(), core)

    def ratio(self) -> float:
        """0 idle to 1 no time left, since the last call or the beginning."""
        idle, total = spent(FILE.read_text(), self._core)
        idle_before, total_before = self._before
        self._before = (idle, total)
        passed = total - total_before
        return 1.0 - (idle - idle_before) / passed if passed > 0 else 0.0
