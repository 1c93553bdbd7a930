"""Tests what is committed: sources alone, no program that a command left in the checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY


def begins_as_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def test_no_program_is_committed() -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("no checkout of git")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout.decode()
    files = [REPOSITORY / name for name in listed.split("\0") if name]
    assert REPOSITORY / "Makefile" in files
    programs = [one for one in files if one.is_file() and begins_as_program(one)]
    assert not programs
