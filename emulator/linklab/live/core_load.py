"""How much time is left on the core that an emulator runs on."""

from __future__ import annotations

import os

import psutil


class CoreLoad:
    """The busy share of a core's time from call to call, whoever used it.

    Of all cores together where `core` is None, or where some are switched off: psutil does not
    tell which are left.
    """

    def __init__(self, core: int | None) -> None:
        all_on = os.sysconf("SC_NPROCESSORS_CONF") == psutil.cpu_count()
        self._core = core if all_on else None
        self._before = self._spent_s()

    def ratio(self) -> float:
        """0 idle to 1 no time left, since the last call or the beginning."""
        idle_s, total_s = self._spent_s()
        idle_before_s, total_before_s = self._before
        self._before = (idle_s, total_s)
        passed_s = total_s - total_before_s
        return 1.0 - (idle_s - idle_before_s) / passed_s if passed_s > 0 else 0.0

    def _spent_s(self) -> tuple[float, float]:
        """Seconds idle and all seconds so far.

        Time that a hypervisor gave to others is not idle; that of guests is part of user and nice
        (proc_stat(5)).
        """
        spent = psutil.cpu_times() if self._core is None else psutil.cpu_times(True)[self._core]
        return spent.idle + spent.iowait, sum(spent) - spent.guest - spent.guest_nice
