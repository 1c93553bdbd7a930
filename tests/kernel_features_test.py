"""Tests that the guest's trimmed kernel (kernel.config) has what scenarios name and programs expect
of Linux."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROBES, Linklab, command, environment, until
from linklab.scenario.tcp import CONGESTION_CONTROLS
from robustness_test import processes_in


def test_a_program_can_use_all_of_it(linklab: Linklab, tmp_path: Path) -> None:
    probe = PROBES / "kernel_features.py"
    done = linklab("exec", "static-80-50", "--", sys.executable, probe, *CONGESTION_CONTROLS)
    said = "".join(path.read_text() for path in tmp_path.glob("runs/*/client.out"))
    assert done.code == 0, said + done.err
    assert len(said.splitlines()) == 1, said


def test_a_program_may_have_more_mappings_than_the_host_allows(linklab: Linklab) -> None:
    done = linklab(
        "exec", "static-80-50", "--timeout", "120", "--", sys.executable, PROBES / "scattered.py"
    )
    assert (done.code, done.out) == (0, "right\n"), done.err


BUSY = """
import mmap, threading
scattered = mmap.mmap(-1, 10_000 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, 10_000, 2):
    scattered[page * mmap.PAGESIZE] = 1
def work():
    while True:
        bytearray(1 << 24)
threading.Thread(target=work).start()
work()
"""


def mappings(process: int) -> int:
    """Returns the number of a process' mappings, 0 if it has ended."""
    try:
        return Path(f"/proc/{process}/maps").read_text().count("\n")
    except OSError:
        return 0


def test_a_program_that_the_host_gives_no_memory_ends(tmp_path: Path) -> None:
    """All of its threads end, with a reason on the console."""
    words = command("exec", "static-80-50", "--", sys.executable, "-c", BUSY)
    with subprocess.Popen(words, cwd=tmp_path, env=environment()) as lab:
        found: list[int] = []

        def busy() -> bool:
            found[:] = [one for one in processes_in(tmp_path / "runs") if mappings(one) > 5000]
            return bool(found)

        try:
            until(busy, "the program never began")
            resource.prlimit(found[0], resource.RLIMIT_AS, (0, 0))
            assert lab.wait(timeout=120) == 1
        finally:
            lab.kill()
    (console,) = tmp_path.glob("runs/*/console.log")
    assert "UML ran out of memory on the host side" in console.read_text()


@pytest.mark.one_at_a_time
def test_processor_time_is_what_was_worked(linklab: Linklab, tmp_path: Path) -> None:
    """On the real clock. With a clock of 10 ms it would be nearly nothing, or as much as all of it."""
    probe = PROBES / "naps.py"
    words = ("exec", "static-80-50", "--clock", "real", "--", sys.executable, probe)
    done = linklab(*words)
    assert done.code == 0, done.err
    (said,) = tmp_path.glob("runs/*/client.out")
    worked_s, told_s = map(float, said.read_text().split())
    assert 0.8 * worked_s <= told_s < 1.5 * worked_s
