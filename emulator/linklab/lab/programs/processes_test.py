"""Tests the sampled use of processes against the kernel's values of this one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linklab.core.records import ProcessRecord, Tail
from linklab.lab.programs.processes import ProcessWatch

BUSY = (
    "import time\ninput()\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
)


def records(run_dir: Path) -> list[ProcessRecord]:
    return Tail(run_dir, ProcessRecord).read()


def test_processor_time_and_memory_are_those_of_the_processes(tmp_path: Path) -> None:
    busy = subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE)
    assert busy.stdin is not None
    watch = ProcessWatch(tmp_path, {"client": busy.pid, "server": os.getpid()})
    watch.look(0.5)
    with busy.stdin as told:
        told.write(b"begin\n")
    os.waitid(os.P_PID, busy.pid, os.WEXITED | os.WNOWAIT)
    watch.look(1.5)
    busy.wait()
    watch.look(2.5)
    watch.close()
    client = [one for one in records(tmp_path) if one.process == "client"]
    server = [one for one in records(tmp_path) if one.process == "server"]
    assert [one.t_s for one in client] == [0.5, 1.5], "one that is gone is not sampled"
    assert client[1].cpu_s >= 0.3
    assert client[0].rss_bytes is not None
    assert client[1].rss_bytes is None, "it has ended, and its memory is no 0"
    assert [one.t_s for one in server] == [0.5, 1.5, 2.5]
    of_children = os.times().children_user + os.times().children_system
    assert server[-1].cpu_s <= time.process_time() + of_children + 0.5
    with Path("/proc/self/statm").open() as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert server[-1].rss_bytes == pytest.approx(resident, rel=0.3)
