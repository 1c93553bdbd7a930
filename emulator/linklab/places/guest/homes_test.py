import os
import pwd
import tempfile
from pathlib import Path

import pytest

from linklab.places.guest import homes
from linklab.places.guest.homes import Homes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    for name in (
        *(".ssh", ".config/app", ".local/bin", ".local/share"),
        *("snap/firefox", "project/bin"),
    ):
        (made / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(made))
    return made


def test_hidden_are_all_homes_and_what_their_sessions_have(home: Path) -> None:
    found = homes.found()
    assert home in found.homes
    assert home in found.trees
    own = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for path in (own, Path("/root"), Path("/home"), Path("/run/user")):
        assert not path.exists() or path in found.trees, path
    assert not {Path("/"), Path("/usr/sbin"), Path("/bin")} & found.trees


def test_a_home_in_shared_memory_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as home:
        monkeypatch.setenv("HOME", home)
        assert Path(home) in homes.found().trees


@pytest.mark.parametrize("home", ["/", "/usr/sbin", "/dev/shm", "/nonexistent", "relative"])
def test_the_machine_s_files_are_no_home(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    machine = {Path("/"), Path("/usr/sbin"), Path("/dev/shm"), Path("/nonexistent")}
    assert not machine & homes.found().trees


def test_a_home_that_is_a_link_is_hidden_by_its_name_in_the_kernel(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "me").symlink_to("home")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert home in homes.found().trees
    assert homes.found().hold(tmp_path / "me" / ".ssh")


@pytest.mark.parametrize(
    ("name", "is_broad"),
    [
        ("..", True),
        (".", True),
        (".ssh", True),
        (".local", True),
        (".local/share", True),
        ("snap", True),
        (".local/bin", False),
        (".config/app", False),
        ("project", False),
    ],
)
def test_what_is_too_much_to_be_shown_for_something_in_it(
    home: Path, name: str, is_broad: bool
) -> None:
    assert homes.found().is_broad(home / name) == is_broad


def test_steps_are_the_links_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").symlink_to("a/../a")
    (tmp_path / "d").symlink_to(tmp_path / "c")
    (tmp_path / "loop").symlink_to("loop")
    assert homes.steps(tmp_path / "d" / "b") == (
        {tmp_path / "d": str(tmp_path / "c"), tmp_path / "c": "a/../a"},
        tmp_path / "a" / "b",
    )
    assert homes.steps(tmp_path / "a" / "b") == ({}, tmp_path / "a" / "b")
    assert homes.steps(tmp_path / "no" / "where") == ({}, tmp_path / "no" / "where")
    assert homes.steps(tmp_path / "loop")[0] == {tmp_path / "loop": "loop"}


def test_what_is_hidden_is_said_if_it_is_there_and_not_shown(home: Path) -> None:
    found = Homes(frozenset([home]), frozenset([home]))
    (home / "project" / "file").touch()
    text = (
        f"cat: '{home}/.ssh': No such file\n{home}/none and /etc/passwd and {home}/project/file, "
        f"https://{home}/.ssh {home}/.ssh."
    )
    assert list(found.missed(text, [home / "project"])) == [
        f"{home}/.ssh is hidden in the guest; --share {home}/.ssh shows it"
    ]
    assert len(list(found.missed(text, []))) == 2
