import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core import scratch as leftovers
from linklab.core.paths import PYTHON_PATH, REPOSITORY, Cached
from linklab.core.scratch import Kind


def filled(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "file").write_text("content")
    return path


def test_directories_of_the_dead_are_found_and_no_others(
    scratch: Path, cache: Path, dead_pid: int
) -> None:
    ours = {filled(scratch / f"linklab-{kind}-{dead_pid}-a_b1") for kind in get_args(Kind)}
    filled(scratch / f"linklab-guest-{os.getpid()}-abc")
    filled(scratch / f"linklab-notes-{dead_pid}-abc")
    filled(scratch / f"linklab-guest-{dead_pid}-abc.kept")
    filled(scratch / f"my-linklab-guest-{dead_pid}-abc")
    filled(scratch / "linklab-guest-notes")
    (scratch / f"linklab-guest-{dead_pid}-file").write_text("a file")
    (scratch / f"linklab-run-{dead_pid}-link").symlink_to(filled(scratch / "elsewhere"))
    assert set(leftovers.find()) == ours
    assert set(leftovers.remove(cache=False)) == {f"removed {path}" for path in ours}
    assert not any(path.exists() for path in ours)
    assert len(list(scratch.iterdir())) == 8
    assert (scratch / "elsewhere" / "file").exists()


def test_those_of_other_users_are_left(
    scratch: Path, cache: Path, dead_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(scratch / f"linklab-guest-{dead_pid}-abc")
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert list(leftovers.find()) == []


def test_unfinished_builds_are_found(scratch: Path, cache: Path, dead_pid: int) -> None:
    dead = filled(cache / "kernel" / f"build-{dead_pid}-abc")
    filled(cache / "kernel" / f"build-{os.getpid()}-abc")
    dead_image = filled(cache / "image" / f"new-guest-{dead_pid}-abc")
    filled(cache / "image" / f"new-guest-{os.getpid()}-abc")
    (cache / "kernel" / "build.log").write_text("log")
    assert set(leftovers.find()) == {dead, dead_image}


def test_half_written_files_of_the_dead_are_found(
    scratch: Path, cache: Path, dead_pid: int
) -> None:
    (cache / "payloads").mkdir(parents=True)
    dead = cache / "payloads" / f".payload-1-1.bin.{dead_pid}.part"
    for path in (dead, cache / "payloads" / f".payload-1-1.bin.{os.getpid()}.part"):
        path.write_text("half")
    assert list(leftovers.remove(cache=False)) == [f"removed {dead}"]


def test_the_cache_goes_only_when_asked_for_and_only_what_is_linklab_s(
    scratch: Path, cache: Path
) -> None:
    parts = {filled(cache / name) for name in get_args(Cached) if name != "ca.pem"}
    (cache / "ca.pem").write_text("content")
    parts.add(cache / "ca.pem")
    foreign = filled(cache / "thesis")
    assert list(leftovers.remove(cache=False)) == []
    assert all(path.exists() for path in parts)
    assert set(leftovers.remove(cache=True)) == {f"removed {path}" for path in parts}
    assert list(cache.iterdir()) == [foreign]
    assert (foreign / "file").exists()


def test_no_half_of_an_image_counts_as_whole(
    scratch: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `linklab clean --cache` is interrupted."""
    images = {filled(cache / "image" / f"{name}-0123abcd") for name in ("guest", "kernel")}

    def interrupt(path: Path, ignore_errors: bool) -> None:
        raise KeyboardInterrupt

    removing = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", interrupt)
    for _ in images:
        with pytest.raises(KeyboardInterrupt):
            list(leftovers.remove(cache=True))
    assert not any(path.exists() for path in images)
    monkeypatch.setattr(shutil, "rmtree", removing)
    monkeypatch.setattr(leftovers, "is_alive", lambda pid: False)
    assert len(list(leftovers.find())) == len(images)
    list(leftovers.remove(cache=True))
    assert not cache.exists()


def test_who_writes_into_the_cache_says_so_where_it_is_cleaned() -> None:
    """By `Cached`: the cache directory itself is for those who write nothing there."""
    package = PYTHON_PATH / "linklab"
    sources = [one for one in package.rglob("*.py") if not one.name.endswith("_test.py")]
    assert {str(one.relative_to(package)) for one in sources if "cache_dir" in one.read_text()} == {
        "core/paths.py",
        "core/scratch.py",
        "commands/doctor.py",
        "core/unwritable.py",
    }
    client = (REPOSITORY / "emulator" / "setup" / "client").read_text()
    assert re.findall(r"\$cache\b([^\s\"]*)", client) == ["/go"]


def test_an_empty_cache_goes_altogether_and_a_missing_one_is_no_error(
    scratch: Path, cache: Path
) -> None:
    filled(cache / "kernel")
    assert list(leftovers.remove(cache=True)) == [f"removed {cache / 'kernel'}"]
    assert not cache.exists()
    assert list(leftovers.remove(cache=True)) == []


def test_what_cannot_be_removed_is_said(
    scratch: Path, cache: Path, dead_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = filled(scratch / f"linklab-guest-{dead_pid}-abc")
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    assert list(leftovers.remove(cache=False)) == [f"could not remove {kept}"]


def test_what_is_made_is_what_is_found(scratch: Path, cache: Path, dead_pid: int) -> None:
    for kind in ("guest", "run"):
        with tempfile.TemporaryDirectory(prefix=leftovers.scratch_prefix(kind), dir=scratch) as one:
            assert list(leftovers.find()) == []  # Its process is alive.
            dead = Path(one).with_name(re.sub(r"-\d+-", f"-{dead_pid}-", Path(one).name))
            filled(dead)
            assert list(leftovers.find()) == [dead]
            list(leftovers.remove(cache=False))


def test_the_usual_places_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/mine")
    monkeypatch.setattr(tempfile, "tempdir", "/python-s")
    places = {"/mine", "/dev/shm", "/tmp", "/var/tmp", "/python-s"}
    assert places == leftovers._scratch_places()


@pytest.mark.parametrize("given", ["{}/", ".", "../{name}"])
def test_a_place_of_two_names_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    before = leftovers._scratch_places()
    monkeypatch.setenv("TMPDIR", given.format(tmp_path, name=tmp_path.name))
    assert leftovers._scratch_places() == before


@given(st.integers(min_value=(1 << 22) + 1))
def test_no_number_that_a_name_may_have_is_an_error(number: int) -> None:
    """Linux gives processes numbers up to 2 to the 22nd (PID_MAX_LIMIT)."""
    assert not leftovers.is_alive(number)


def test_the_numbers_of_processes_are_those_of_proc() -> None:
    for number in (0, 1, os.getpid(), os.getppid()):
        assert leftovers.is_alive(number) == Path(f"/proc/{number}").exists(), number
