"""Samples processor time and memory of client and server on the real clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from linklab.core.records import FILES, ProcessRecord, line

PERIOD_S: Final = 0.1
"""The sampling interval. Linux counts processor time in hundredths of a second, so a load over one
interval is exact to a tenth of a core."""


class ProcessWatch:
    """Writes `processes.jsonl`. The player calls it, so there is no further thread or process.

    It must not be used in virtual time, where computing takes no time.
    """

    def __init__(self, run_dir: Path, pids: Mapping[str, int]) -> None:
        self._file = (run_dir / FILES[ProcessRecord]).open("wb")
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}

    def look(self, t_s: float) -> None:
        """Samples every process at scenario time `t_s`, including those that have just ended."""
        for name, process in self._processes.items():
            try:
                with process.oneshot():
                    spent = process.cpu_times()
                    rss_bytes = process.memory_info().rss
            except psutil.Error:
                continue
            cpu_s = spent.user + spent.system + spent.children_user + spent.children_system
            record = ProcessRecord(t_s=t_s, process=name, cpu_s=cpu_s, rss_bytes=rss_bytes or None)
            self._file.write(line(record))

    def close(self) -> None:
        self._file.close()
