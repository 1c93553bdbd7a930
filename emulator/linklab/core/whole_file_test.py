"""Tests whole_file.py."""

import os
import stat
from pathlib import Path

import pytest

from linklab.core import whole_file


def test_a_file_is_the_old_one_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with whole_file.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyError), whole_file.replacing(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    for path, kind in (
        (tmp_path / "no" / "file", FileNotFoundError),
        (tmp_path, IsADirectoryError),
        (Path(), IsADirectoryError),
        (Path("/"), IsADirectoryError),
    ):
        with pytest.raises(kind) as raised:
            whole_file.write(path, "x")
        assert (raised.value.filename, raised.value.filename2) == (str(path), None)
    assert list(tmp_path.iterdir()) == []


def test_rights_are_those_asked_for_and_never_more(tmp_path: Path) -> None:
    with whole_file.replacing(tmp_path / "key", 0o600) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with whole_file.replacing(tmp_path / "shared", 0o644) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o644
    before = os.umask(0o027)
    try:
        whole_file.write(tmp_path / "plain", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o640


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "file").symlink_to("victim")
    (tmp_path / f".file.{os.getpid()}.part").symlink_to("victim")
    whole_file.write(tmp_path / "file", b"new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "file").is_symlink()


def test_what_a_killed_process_left_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    dead = os.fork()
    if dead == 0:
        os._exit(0)
    os.waitpid(dead, 0)
    (tmp_path / f".file.{dead}.part").write_text("half")
    living = tmp_path / f".file.{os.getppid()}.part"
    living.write_text("half")
    other = tmp_path / f".another.{dead}.part"
    other.write_text("half")
    whole_file.write(tmp_path / "file", "whole")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "file", living, other])


def test_a_pipe_is_written_into_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        whole_file.write(pipe, "new")
        whole_file.write(tmp_path / "link", " and new")
        assert reader.read() == b"new and new"
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert (tmp_path / "link").is_symlink()


def test_what_the_process_has_open_is_written_on(tmp_path: Path) -> None:
    """As /dev/stdout, also where that is a file."""
    with (tmp_path / "out").open("wb", buffering=0) as out:
        out.write(b"before ")
        (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{out.fileno()}")
        whole_file.write(tmp_path / "stdout", "new")
        whole_file.write(Path(f"/dev/fd/{out.fileno()}"), " and new")
        out.write(b" after")
    assert (tmp_path / "stdout").is_symlink()
    assert (tmp_path / "out").read_text() == "before new and new after"


def test_a_device_gets_nothing_of_what_fails(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    path = Path(f"/proc/self/fd/{writing}")
    with pytest.raises(KeyError), whole_file.replacing(path) as file:
        file.write(b"half")
        raise KeyError
    os.close(writing)
    with os.fdopen(reading, "rb") as left:
        assert left.read() == b""


def test_a_secret_is_never_written_into_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key")
    whole_file.write(tmp_path / "key", "secret", 0o600)
    assert (tmp_path / "key").read_text() == "secret"
