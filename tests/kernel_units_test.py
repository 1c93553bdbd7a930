"""Unit tests that need root and network namespaces of their own run in the guest as well, where
anybody is root: outside they are skipped for who is not."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from conftest import REPOSITORY, Linklab

UNIT_TESTS = REPOSITORY / "emulator" / "linklab"


def needing_root() -> list[str]:
    """The unit tests that make a network namespace, as pytest names them."""
    return [
        f"{path}::{name}"
        for path in sorted(UNIT_TESTS.rglob("*_test.py"))
        for name in re.findall(r"^def (test_\w+)\([^)]*\bnamespace: int", path.read_text(), re.M)
    ]


def test_they_pass_in_the_guest_and_none_is_skipped(linklab: Linklab, tmp_path: Path) -> None:
    tests = needing_root()
    assert len({test.partition("::")[0] for test in tests}) >= 4
    done = linklab(
        "exec", "--clock", "real", "static-80-50", "--", sys.executable, "-m", "pytest",
        "-o", "addopts=", "-p", "no:cacheprovider", "--rootdir", REPOSITORY, *tests,
    )  # fmt: skip
    said = "".join(path.read_text() for path in tmp_path.glob("runs/*/client.out"))
    assert done.code == 0, said + done.err
    assert re.search(r"=+ \d+ passed in", said), said
