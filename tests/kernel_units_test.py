"""Runs unit tests that need root and network namespaces in the guest, where every user is root."""

import re
import sys
from pathlib import Path

from conftest import REPOSITORY, Linklab, ran
from linklab.conftest import may_need_the_kernel

UNIT_TESTS = REPOSITORY / "emulator" / "linklab"


def needing_root() -> list[str]:
    """Returns the unit tests that make a network namespace, by any fixture, with pytest's names.
    Collecting all files takes 10 s of a core."""
    files = filter(may_need_the_kernel, UNIT_TESTS.rglob("*_test.py"))
    done = ran(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "of_the_kernel"),
            *("-o", "addopts=-p no:schemathesis", "-p", "no:cacheprovider", *files),
        ],
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [f"{REPOSITORY}/{name}" for name in re.findall(r"^\S+::.*$", done.stdout, re.M)]


def test_they_pass_in_the_guest_and_none_is_skipped(linklab: Linklab, tmp_path: Path) -> None:
    tests = needing_root()
    assert len({test.partition("::")[0] for test in tests}) >= 14
    done = linklab(
        *("exec", "--clock", "real", "static-80-50", "--", sys.executable, "-m", "pytest"),
        *("-o", "addopts=", "-p", "no:cacheprovider", "--rootdir", REPOSITORY, *tests),
    )
    said = "".join(path.read_text() for path in tmp_path.glob("runs/*/client.out"))
    assert done.code == 0, said + done.err
    assert re.search(rf"=+ {len(tests)} passed in", said), said
