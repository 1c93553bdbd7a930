from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROBES


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_who_is_interrupted_leaves_no_program(tmp_path: Path, name: str) -> None:
    """A curl of the test's interrupts it."""
    curl = tmp_path / "curl"
    curl.write_text(f"#!/bin/sh\nkill -{name} $PPID\n")
    curl.chmod(0o755)
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LINKLAB_CA": "", "LINKLAB_URL": ""}
    other = ("sh", "-c", "echo $$; exec sleep 600")
    with subprocess.Popen(
        [sys.executable, PROBES / "beside.py", "lo", "1", *other],
        env={**os.environ, **given},
        stderr=subprocess.PIPE,
        text=True,
    ) as probe:
        assert probe.stderr is not None
        pid = int(probe.stderr.readline())
        assert probe.wait(timeout=60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
