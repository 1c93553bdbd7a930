"""Processor time and memory of client and server, sampled while they run on the real clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from linklab.core.records import FILES, ProcessRecord, line

PERIOD_S: Final = 0.1
"""Ten times a second. Linux counts processor time in hundredths of a second, so that a load over
one period is known to a tenth of a core."""


class ProcessWatch:
    """Writes `processes.jsonl`. It is the player that calls: no further thread, no further process.

    In virtual time computing takes no time, and nobody should ask for this.
    """

    def __init__(self, run_dir: Path, pids: Mapping[str, int]) -> None:
        self._file = (run_dir / FILES[ProcessRecord]).open("wb")
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}

    def look(self, t_s: float) -> None:
        """Samples every process at scenario time `t_s`, those too that have just ended."""
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
        """Closes the file."""
        self._file.close()
