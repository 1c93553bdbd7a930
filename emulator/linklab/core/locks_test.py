"""Tests locks.py."""

import subprocess
import sys
from pathlib import Path

from linklab.core import locks

ENTERS = """
import sys
from pathlib import Path
from linklab.core import locks
print("asks", flush=True)
with locks.locked(Path(sys.argv[1])):
    print("is in", flush=True)
"""


def test_a_second_process_waits_until_the_first_has_left(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locks.locked(lock):
        other = subprocess.Popen(
            [sys.executable, "-c", ENTERS, str(lock)], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "asks\n"
        try:
            other.wait(0.2)
        except subprocess.TimeoutExpired:
            waited = True
        else:
            waited = False
    said, _ = other.communicate(timeout=20)
    assert waited
    assert said == "is in\n"


def test_a_lock_is_taken_once_and_again_when_it_is_closed(tmp_path: Path) -> None:
    first = (tmp_path / "lock").open("wb")
    assert locks.try_to_take(first)
    with (tmp_path / "lock").open("wb") as second:
        assert not locks.try_to_take(second)
        first.close()
        assert locks.try_to_take(second)
