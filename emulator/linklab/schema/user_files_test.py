"""Tests the rule for files that a user names (client/internal/plainfile). multilink's tests have
the same table."""

import json
import os
import pty
import socket
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from linklab.core import whole_file
from linklab.core.paths import REPOSITORY
from linklab.schema import document

RULE = json.loads(
    (REPOSITORY / "client/internal/plainfile/testdata/rule.json").read_text(encoding="utf-8")
)
OLD, NEW = "old", "new"


def placed(what: str, path: Path, stack: ExitStack) -> tuple[Path, Callable[[], str]]:
    """Makes what a case is about, at `path` or open; returns its name and what came into it."""
    if what.startswith("link to "):
        aim, came = placed(what.removeprefix("link to "), path.with_name("aim"), stack)
        path.symlink_to(aim)
        return path, came
    if what == "file":
        path.write_text(OLD)
    elif what == "pipe":
        os.mkfifo(path)
        both = os.open(path, os.O_RDWR)
        stack.callback(os.close, both)
        return path, lambda: os.read(both, 100).decode()
    elif what == "null device":
        node(path, stat.S_IFCHR, os.makedev(1, 3))
    elif what == "block device":
        node(path, stat.S_IFBLK, os.makedev(42, 0))
    elif what == "open file":
        file = stack.enter_context(path.open("w+b", buffering=0))
        file.write(OLD.encode())
        return Path(f"/proc/self/fd/{file.fileno()}"), lambda: path.read_text().removeprefix(OLD)
    elif what == "open pipe":
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
        return Path(f"/proc/self/fd/{writing}"), lambda: os.read(reading, 100).decode()
    elif what == "socket":
        stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(path))
    elif what == "directory":
        path.mkdir()
    else:
        assert what == "nothing"
    return path, lambda: NEW


def node(path: Path, kind: int, device: int) -> None:
    try:
        os.mknod(path, kind | 0o600, device)
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.mark.parametrize("case", RULE, ids=[one["name"] for one in RULE])
def test_what_a_user_names_for_writing(case: dict[str, str], tmp_path: Path) -> None:
    with ExitStack() as stack:
        path, came = placed(case["name"], tmp_path / "it", stack)
        before = path.lstat() if os.path.lexists(path) else None
        if case["written"] == "refused":
            with pytest.raises(OSError) as raised:
                whole_file.write(path, NEW)
            assert raised.value.filename == str(path)
        else:
            whole_file.write(path, NEW)
            assert came() == NEW
        if case["written"] in ("made", "replaced"):
            assert stat.S_ISREG(path.lstat().st_mode)
            assert path.read_text() == NEW
        else:
            assert before is not None
            after = path.lstat()
            assert (after.st_mode, after.st_dev, after.st_rdev) == (
                before.st_mode,
                before.st_dev,
                before.st_rdev,
            )
        assert not list(tmp_path.glob("*.part"))


# Other pipes wait for their writer, as in a shell.
READ = [one for one in RULE if one["name"] == "open pipe" or not one["name"].endswith("pipe")]


@pytest.mark.parametrize("case", READ, ids=[one["name"] for one in READ])
def test_what_a_user_names_for_reading(case: dict[str, str], tmp_path: Path) -> None:
    with ExitStack() as stack:
        if case["name"] == "open pipe":
            reading, writing = os.pipe()
            os.close(writing)
            stack.callback(os.close, reading)
            path = Path(f"/proc/self/fd/{reading}")
        else:
            path, _ = placed(case["name"], tmp_path / "it", stack)
        if case["read"] == "refused":
            with pytest.raises(document.ScenarioError, match="cannot be read"):
                document.read(path, str(path))
        else:
            document.read(path, str(path))


def test_a_terminal_is_not_written_to() -> None:
    master, terminal = pty.openpty()
    with os.fdopen(master, "rb"), os.fdopen(terminal, "wb"):
        for path in (os.ttyname(terminal), f"/proc/self/fd/{terminal}"):
            with pytest.raises(OSError, match="is a terminal"):
                whole_file.write(Path(path), NEW)
