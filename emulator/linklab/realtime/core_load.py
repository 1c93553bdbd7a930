"""Measures the load of the emulator's core."""

from __future__ import annotations

import os

import psutil


class CoreLoad:
    """Measures the busy share of a core's time between two calls, by all processes.

    It measures all cores together if `core` is None, or if some cores are offline, because psutil
    does not tell which.
    """

    def __init__(self, core: int | None) -> None:
        all_on = os.sysconf("SC_NPROCESSORS_CONF") == psutil.cpu_count()
        self._core = core if all_on else None
        self._before = self._spent_s()

    def ratio(self) -> float:
        """Returns the load since the last call: 0 is idle, 1 is full."""
        idle_s, total_s = self._spent_s()
        idle_before_s, total_before_s = self._before
        self._before = (idle_s, total_s)
        passed_s = total_s - total_before_s
        return 1.0 - (idle_s - idle_before_s) / passed_s if passed_s > 0 else 0.0

    def _spent_s(self) -> tuple[float, float]:
        """Returns the idle seconds and all seconds so far.

        Time that a hypervisor gave to others does not count as idle. User and nice include the time
        of guests (proc_stat(5)).
        """
        spent = psutil.cpu_times() if self._core is None else psutil.cpu_times(True)[self._core]
        return spent.idle + spent.iowait, sum(spent) - spent.guest - spent.guest_nice
