"""What `make setup` and its like do, on a system that is not as they would have it."""

from __future__ import annotations

import os
import shlex
import shutil
import site
import subprocess
from pathlib import Path

from conftest import REPOSITORY

SETUP = REPOSITORY / "emulator" / "setup"


def test_linklab_runs_from_a_path_with_a_space(tmp_path: Path) -> None:
    environment = tmp_path / "my dir" / ".venv"
    (tmp_path / "none.txt").touch()
    subprocess.run([SETUP / "python", environment, tmp_path / "none.txt"], check=True, timeout=120)
    done = subprocess.run(
        [environment / "bin" / "linklab", "--version"],
        env={**os.environ, "PYTHONPATH": ":".join(site.getsitepackages())},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("linklab ")


def test_the_soak_in_the_lab_runs_from_a_path_with_a_space(tmp_path: Path) -> None:
    directory = tmp_path / "my dir"
    directory.mkdir()
    shutil.copy(REPOSITORY / "Makefile", directory)
    said = subprocess.run(
        ["make", "-n", "-o", "setup", "soak-lab"],
        cwd=directory, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    words = shlex.split(said.stdout.replace("\\\n", ""))
    assert words[words.index("--") + 1] == f"{directory}/build/soak"
