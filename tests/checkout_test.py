"""Tests what is committed: sources alone, no program that a command left in the checkout, and tests
that do not care where it lies."""

import re
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


def test_tests_quote_where_the_checkout_lies() -> None:
    """Python and probes are in the checkout, whose path may have spaces."""
    bare = re.compile(r"(?:\bexec|python3?|&|;|--) \{(?:sys\.executable|PROBES|REPOSITORY)\b")
    bare_first = re.compile(r'f" ?\{sys\.executable\} ')
    found = [
        f"{file.name}:{number}: {line.strip()}"
        for file in sorted((REPOSITORY / "tests").glob("*.py"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if bare.search(line) or bare_first.search(line)
    ]
    assert found == []
