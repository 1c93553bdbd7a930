import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from linklab.core import plain_file
from linklab.core.plain_file import NotPlainError, TooLargeError


def link(path: Path) -> None:
    path.symlink_to(path.with_name("victim"))


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [link, os.mkfifo, os.mkdir, listening])
def test_only_plain_files_are_read_and_written(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("the host's")
    make(tmp_path / "file")
    refused = (
        plain_file.read,
        plain_file.opened,
        lambda path: plain_file.end(path, 4),
        plain_file.appending,
        lambda path: plain_file.write(path, b"changed"),
    )
    for use in refused:
        with pytest.raises(OSError, match=r"file'$") as error:
            use(tmp_path / "file")
        assert isinstance(error.value, NotPlainError | IsADirectoryError)
    assert victim.read_text() == "the host's"


def test_a_file_of_two_names_is_not_written(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("the host's")
    (tmp_path / "file").hardlink_to(victim)
    for use in (plain_file.appending, lambda path: plain_file.write(path, b"changed")):
        with pytest.raises(NotPlainError):
            use(tmp_path / "file")
    assert plain_file.read(tmp_path / "file") == b"the host's"


def test_plain_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        plain_file.read(path)
    plain_file.write(path, b"long words")
    plain_file.write(path, b"words")
    assert plain_file.read(path) == b"words"
    with plain_file.appending(path) as file:
        file.write(b" more")
    assert plain_file.read(path) == b"words more"
    assert path.stat().st_mode & 0o111 == 0
    assert (plain_file.end(path, 4), plain_file.end(path, 40)) == (b"more", b"words more")


def test_a_file_that_is_nearly_all_hole_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"{}")
    os.truncate(file, 1 << 40)
    with pytest.raises(TooLargeError, match=r"is too large; allowed: 67108864 bytes: .*file'$"):
        plain_file.read(file)
