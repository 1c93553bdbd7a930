import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest

from linklab.core.paths import Cached
from linklab.places.guest import confinement, image, landlock
from linklab.places.guest.confinement import Fence

Confine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    confinement.fence.cache_clear()
    yield
    confinement.fence.cache_clear()


@pytest.fixture
def refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """No namespaces: the one way to have them on this machine says that they are refused."""

    def install() -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "bwrap").write_text("#!/bin/sh\necho none for you >&2\nexit 1\n")
        (tmp_path / "bin" / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    return install


@pytest.fixture(params=["namespaces", "landlock"])
def confine(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuse: Callable[[], None],
) -> Confine:
    """Runs a shell script as a guest runs that needs paths, with a home and cache of the test's own."""
    if request.param == "landlock":
        refuse()
    if confinement.fence().name != request.param:
        pytest.skip(f"this machine has no such fence: {confinement.fence().words}")
    home = tmp_path / "home"
    for path in ("home/.ssh", "home/.config/gh", "home/project", "home/run", "scratch"):
        (tmp_path / path).mkdir(parents=True)
    for path in (".ssh/id", ".config/gh/hosts.yml", ".netrc", ".bashrc", "project/source"):
        (home / path).write_text("content")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path / "cache"))

    def run(script: str, *needed: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            confinement.confined(["sh", "-c", script], home / "run", tmp_path / "scratch", *needed),
            cwd=home / "run",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_it_writes_its_two_directories_alone(confine: Confine, tmp_path: Path) -> None:
    done = confine(
        "echo 1 > here && mkdir below && mv here below/there && rm below/there &&"
        " ln -s / below/link && mkfifo below/pipe && echo kept > kept &&"
        f" echo 2 > '{tmp_path}/scratch/memory' || exit 1;"
        " for file in ../project/source ../.bashrc ../new /tmp/linklab-new; do"
        " (echo changed > $file) && exit 2; done; rm ../project/source && exit 3;"
        " mv ../project/source . && exit 4; ln ../project/source hard && exit 5;"
        " mkdir ../project/directory && exit 6; ln -s / ../link && exit 7;"
        " truncate -s 0 ../project/source && exit 8; exit 0",
        home := tmp_path / "home",
    )
    assert done.returncode == 0, done.stderr
    assert (home / "run" / "kept").read_text() == "kept\n"
    assert (tmp_path / "scratch" / "memory").read_text() == "2\n"
    assert (home / "project" / "source").read_text() == "content"
    assert {path.name for path in home.iterdir()} == {
        *(".ssh", ".config", ".netrc", ".bashrc", "project", "run"),
    }


def test_modes_owners_and_times_stay_in_namespaces(confine: Confine, tmp_path: Path) -> None:
    """Landlock has no rights for them (confinement.py): should it get some, this says so."""
    source = tmp_path / "home" / "project" / "source"
    before = source.stat()
    done = confine(
        "chmod 777 ../project/source; touch -d 2001-01-01 ../project/source", source.parent
    )
    kept = source.stat() == before
    assert kept == (confinement.fence().name == "namespaces"), done.stderr


def test_of_homes_it_reads_what_its_run_needs(confine: Confine, tmp_path: Path) -> None:
    done = confine(
        "cat ../project/source /etc/passwd > /dev/null && ls / /etc > /dev/null || exit 1;"
        " for file in ../.ssh/id ../.config/gh/hosts.yml ../.netrc ../.bashrc /etc/shadow"
        ' /etc/gshadow; do [ -n "$(cat $file)" ] && echo $file can be read; done; exit 0',
        tmp_path / "home" / "project",
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_needed_is_found_by_its_links(confine: Confine, tmp_path: Path) -> None:
    """As a venv's Python is, and whatever lies below a home that is a link itself."""
    home = tmp_path / "home"
    (home / ".pyenv" / "3.11" / "bin").mkdir(parents=True)
    (home / ".pyenv" / "3.11" / "bin" / "python").write_text("a program")
    (home / ".pyenv" / "3").symlink_to("3.11")
    (home / "project" / "python").symlink_to(home / ".pyenv" / "3" / "bin" / "python")
    (home / "project" / "other").symlink_to(home / ".netrc")
    done = confine(
        "cat ../project/python; cat ../project/other; cat ../.netrc; ls -A .. | grep bashrc",
        home / "project",
        home / "project" / "python",
    )
    kept = "" if confinement.fence().name == "namespaces" else ".bashrc\n"
    assert done.stdout == f"a program{kept}"


def test_secrets_in_what_is_shown_are_hidden(confine: Confine, tmp_path: Path) -> None:
    """A whole home holds the cache, too."""
    confine("true")
    (tmp_path / "cache" / "live" / "token").write_text("token")
    done = confine(f"cat {tmp_path}/home/.netrc {tmp_path}/cache/live/token", tmp_path)
    assert done.stdout == "content"


def test_homes_of_others_are_hidden(
    confine: Confine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    done = confine("find /root /home -maxdepth 2 -type f -exec cat {} +")
    assert done.stdout == ""


def test_of_the_cache_it_reads_what_its_run_needs(confine: Confine, tmp_path: Path) -> None:
    """Hidden is what is not known to be read: a new secret too."""
    cache = tmp_path / "cache"
    confine("true")
    assert (cache / "live").is_dir()  # So what a lab that starts later keeps there is covered.
    for name in get_args(Cached):
        (cache / name).mkdir(exist_ok=True)
        (cache / name / "file").write_text(f"{name}\n")
    for name in ("ca.key", "own.key", "other.key"):
        (cache / "authority" / name).write_text(f"{name}\n")
    done = confine(f"cat {cache}/*/file {cache}/authority/*", cache / "authority" / "own.key")
    assert done.stdout.split() == ["bundle", "ca.pem", "image", "kernel", "payloads", "own.key"]


def test_a_key_that_is_made_while_it_runs_is_hidden_too(confine: Confine, tmp_path: Path) -> None:
    confine("true")
    keys, go = tmp_path / "cache" / "authority", tmp_path / "home" / "run" / "go"
    keys.mkdir(exist_ok=True)
    (keys / "own.key").write_text("own\n")
    os.mkfifo(go)

    def make_another() -> None:
        with go.open("w"):  # Once it runs.
            (keys / "other.key").write_text("other\n")

    with ThreadPoolExecutor() as pool:
        made = pool.submit(make_another)
        done = confine(f"cat go {keys}/own.key; cat {keys}/other.key", keys / "own.key")
        os.close(os.open(go, os.O_RDONLY | os.O_NONBLOCK))  # Should it not have run.
        made.result()
    assert done.stdout == "own\n"


def test_it_sees_no_process_but_its_own(confine: Confine) -> None:
    """/proc of another one leads to its memory, and to files that are not confined."""
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            done = confine(
                f"cat /proc/{other.pid}/environ /proc/{other.pid}/root/etc/passwd;"
                f" kill -0 {other.pid} && echo reached"
            )
        finally:
            other.kill()
    assert done.stdout == ""


def test_it_reaches_no_network(confine: Confine) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = confine(f"bash -c 'echo > /dev/tcp/127.0.0.1/{port}' && echo reached")
    assert done.stdout == ""


def test_of_two_paths_in_each_other_the_inner_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path / "project" / "cache"))
    for name in ("project/cache/live", "run"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("project")
    seen = confinement.view([tmp_path / "run"], [tmp_path / "link", tmp_path / "not-there"])
    assert seen.write == (tmp_path / "run",)
    assert {tmp_path, tmp_path / "project" / "cache" / "live"} <= seen.hidden
    assert tmp_path / "project" in seen.shown
    assert tmp_path / "not-there" not in seen.shown
    assert seen.links[tmp_path / "link"] == "project"
    hides = {path: seen.is_hidden(path) for path in (tmp_path / "project", tmp_path / "link")}
    assert all(hides.values())
    assert not seen.is_hidden(tmp_path / "project" / "cache" / "live")
    shared = confinement.view([], [tmp_path])
    assert tmp_path not in shared.hidden
    assert tmp_path / "project" / "cache" / "live" in shared.hidden


def test_namespaces_come_first_then_landlock_then_words(
    refuse: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refuse()
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    assert confinement.fence() == Fence(
        "landlock", "by Landlock, version 3; no namespaces: none for you"
    )
    confinement.fence.cache_clear()
    monkeypatch.setattr(landlock, "abi", lambda: 2)
    assert confinement.fence().name == "none"
    assert "NOT CONFINED" in confinement.fence().words
    assert "no Landlock (version 2 of 3)" in confinement.fence().words
    assert confinement.confined(["kernel"], tmp_path, tmp_path) == ["kernel"]
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path))
    confinement.fence.cache_clear()
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    words = confinement.fence().words
    assert "no namespaces (bwrap is missing, and the guest's image, which has one" in words
    assert "no Landlock (not in this kernel)" in words


@pytest.mark.skipif(image.cached("guest") is None, reason="the guest image is not made yet")
def test_a_host_without_bubblewrap_takes_that_of_the_image(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if confinement.fence().name != "namespaces":
        pytest.skip("this machine has no namespaces for its users")
    confinement.fence.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    assert confinement.fence().name == "namespaces"
    # The same, and not whatever lies there now.
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path))
    done = subprocess.run(
        confinement.confined(["/bin/sh", "-c", "id -u"], tmp_path, tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{os.geteuid()}\n"
