import os
import socket
import subprocess
from pathlib import Path

import pytest

from linklab.places.guest.leftover_files import remove_unsafe


def test_plain_files_and_directories_stay(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "traces" / "empty").mkdir(parents=True)
    (run_dir / "traces" / "one").write_text("one")
    (run_dir / "two").write_text("two")
    (run_dir / "second-name-of-two").hardlink_to(run_dir / "two")
    before = [(path, path.lstat()) for path in sorted(run_dir.rglob("*"))]
    assert remove_unsafe(run_dir) == []
    assert [(path, path.lstat()) for path in sorted(run_dir.rglob("*"))] == before


def test_what_leads_elsewhere_or_keeps_waiting_goes(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "traces").mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("the host's")
    victim.chmod(0o640)
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "inside").write_text("the host's")
    (run_dir / "outcome.json").symlink_to(victim)
    (run_dir / "dangling").symlink_to("nowhere")
    (run_dir / "directory").symlink_to(tmp_path / "directory")
    (run_dir / "client.json").hardlink_to(victim)
    os.mkfifo(run_dir / "traces" / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(run_dir / "socket"))
        removed = remove_unsafe(run_dir)
    names = ["client.json", "dangling", "directory", "outcome.json", "socket", "traces/pipe"]
    assert removed == [f"'{name}'" for name in names]
    assert [path.name for path in run_dir.rglob("*")] == ["traces"]
    assert victim.read_text() == "the host's"
    assert victim.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "directory" / "inside").read_text() == "the host's"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_devices_go(tmp_path: Path) -> None:
    os.mknod(tmp_path / "null", 0o666 | 0o020000, os.makedev(1, 3))
    assert remove_unsafe(tmp_path) == ["'null'"]


def test_the_owner_can_read_and_remove_the_rest_and_lends_no_rights(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "file").write_text("words")
    (closed / "file").chmod(0)
    closed.chmod(0)
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o6755)
    assert remove_unsafe(tmp_path) == []
    assert closed.stat().st_mode & 0o7777 == 0o700
    assert (closed / "file").stat().st_mode & 0o7777 == 0o600
    assert (tmp_path / "program").stat().st_mode & 0o7777 == 0o755


def test_names_are_said_without_the_terminal_s_signs(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2Jb\nc\udcff").symlink_to("/")
    assert remove_unsafe(tmp_path) == [r"'a\x1b[2Jb\nc\udcff'"]


def test_deep_trees_are_looked_through(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 1500)
    here = tmp_path
    for part in deep.relative_to(tmp_path).parts:
        here /= part
        here.mkdir()
    (deep / "link").symlink_to("/")
    assert len(remove_unsafe(tmp_path)) == 1
    subprocess.run(["rm", "-r", str(tmp_path / "d")], check=True)  # pytest's recursion ends early.
