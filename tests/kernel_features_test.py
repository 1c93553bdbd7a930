"""The guest's kernel has what scenarios name and what programs expect of a Linux system: its
configuration is trimmed (kernel.config), and what it lacks nobody would miss until it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import PROBES, Linklab
from linklab.scenario.tcp import CONGESTION_CONTROLS


def test_a_program_can_use_all_of_it(linklab: Linklab, tmp_path: Path) -> None:
    probe = PROBES / "kernel_features.py"
    done = linklab("exec", "static-80-50", "--", sys.executable, probe, *CONGESTION_CONTROLS)
    said = "".join(path.read_text() for path in tmp_path.glob("runs/*/client.out"))
    assert done.code == 0, said + done.err
    assert len(said.splitlines()) == 1, said


@pytest.mark.alone
def test_processor_time_is_what_was_worked(linklab: Linklab, tmp_path: Path) -> None:
    """On the real clock. By a clock of 10 ms it would be next to nothing, or as much as all of it."""
    probe = PROBES / "naps.py"
    words = ("exec", "static-80-50", "--clock", "real", "--", sys.executable, probe)
    done = linklab(*words)
    assert done.code == 0, done.err
    (said,) = tmp_path.glob("runs/*/client.out")
    worked_s, told_s = map(float, said.read_text().split())
    assert worked_s <= told_s < 1.5 * worked_s
