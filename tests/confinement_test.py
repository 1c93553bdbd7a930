"""Tests what a malicious program in the guest can write, read and leave behind on the host."""

import json
import os
import pwd
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import (
    REPOSITORY,
    Called,
    Linklab,
    ScenarioFile,
    called,
    command,
    environment,
    needs_open_checkout,
    ran,
)
from dummy_home import SECRETS, furnish
from linklab.core.paths import cache_dir
from linklab.places.guest import confinement
from linklab.realtime import token

OUT_OF_THE_RUN_DIRECTORY = """
cd /run/linklab/run
mkdir a /tmp/again; touch a/victim; cd a
mount -t hostfs none /tmp/again -o /proc/self/cwd
rm -r /tmp/again/a; ln -s {outside} /tmp/again/a
echo written > new && echo made
echo changed > victim && echo changed
mkdir directory && echo made
mount -o remount,rw /; touch /usr/written-by-a-guest && echo made
mkdir /tmp/up; mount -t hostfs none /tmp/up -o / && touch /tmp/up/{outside}/new && echo made
umount /tmp/up; mount -t hostfs none /tmp/up -o /proc/self/cwd/.. && touch /tmp/up/beside && echo made
"""
"""The kernel still caches the directory `a` where the host finds a link to another one."""

READ_ALL = """
mkdir /tmp/host; mount -t hostfs none /tmp/host -o /proc
cat /tmp/host/{process}/root/etc/passwd
for file in /etc/shadow {cache}/live/* {cache}/authority/ca.key; do
    cat $file
done
cat $LINKLAB_CA
"""

LEAVE_TRAPS = """
cd /run/linklab/run
for name in client.json summary.json error; do ln -s {outside}/victim $name; done
mkfifo queues.jsonl.new; mv queues.jsonl.new queues.jsonl
chmod 4755 run.json; true
"""


@pytest.fixture(params=["namespaces", "landlock"])
def fence(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Guests use this fence. The other one is used if namespaces are unavailable."""
    if request.param == "landlock":
        (tmp_path / "bwrap").write_text("#!/bin/sh\necho refused >&2\nexit 1\n")
        (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    confinement.fence.cache_clear()
    found = confinement.fence()
    confinement.fence.cache_clear()
    if found.name != request.param:
        pytest.skip(f"this machine has no such fence: {found.words}")
    return found.name


def test_a_guest_cannot_write_outside_its_run_directory(
    fence: str, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("the host's")
    script = OUT_OF_THE_RUN_DIRECTORY.format(outside=outside)
    done = linklab("exec", scenario("out", size="1 MB"), "--", "sh", "-c", script)
    assert done.out == "", done.err
    assert [path.name for path in outside.iterdir()] == ["victim"]
    assert not (tmp_path / "runs" / "beside").exists()
    assert (outside / "victim").read_text() == "the host's"


def test_a_guest_cannot_read_secrets_nor_processes(
    fence: str,
    linklab: Linklab,
    scenario: ScenarioFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINKLAB_CACHE", str(cache_dir()))
    script = READ_ALL.format(cache=cache_dir(), process=os.getpid())
    nowhere = ("127.0.0.1", 0)
    with token.kept(nowhere, "of a live lab"):
        done = linklab("exec", scenario("read", size="1 MB"), "--", "sh", "-c", script)
    certificate = (cache_dir() / "authority" / "ca.pem").read_text()
    assert done.out == certificate, done.err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a home full of secrets."""
    monkeypatch.setenv("LINKLAB_CACHE", str(cache_dir()))
    made = tmp_path / "home"
    furnish(made)
    monkeypatch.setenv("HOME", str(made))
    return made


def call(directory: Path, *words: object) -> Called:
    """Calls `linklab` in a user's current directory."""
    done = called(directory, *words)
    return Called(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("where", [".", "project", ".ssh"])
def test_of_a_home_a_guest_sees_where_one_stands_alone(
    fence: str, scenario: ScenarioFile, home: Path, tmp_path: Path, where: str
) -> None:
    """Except the home itself, or a directory in which programs keep secrets."""
    (home / "project").mkdir()
    (home / "project" / "mine").write_text("my project\n")
    (tmp_path / "names").write_text("\n".join(str(home / name) for name in SECRETS))
    script = (
        f"cat $(cat {tmp_path}/names) {home}/project/mine; find {home} -type f -exec cat {{}} +"
    )
    file = scenario("home", size="1 MB")
    done = call(home / where, "exec", file, "--out", tmp_path / "runs", "--", "sh", "-c", script)
    assert done.out == ("my project\n" * 2 if where == "project" else ""), done.err
    says = f"linklab: {(home / where).resolve()}, where you stand, is hidden in the guest"
    assert (says in done.err) == (where != "project")


def test_what_a_run_needs_of_a_home_is_seen(
    fence: str, scenario: ScenarioFile, home: Path, tmp_path: Path
) -> None:
    """A venv's program whose Python is elsewhere, named files, and shared paths."""
    python = home / ".local" / "share" / "uv" / "python" / "3" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nexec sh "$@"\n')
    python.chmod(0o755)
    venv = home / "venvs" / "one"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").mkdir()
    (venv / "lib" / "module").write_text("a module\n")
    (venv / "bin" / "python").symlink_to(python)
    tool = venv / "bin" / "tool"
    tool.write_text(f'#!{venv}/bin/python\ncat {venv}/lib/module "$@"\n')
    tool.chmod(0o755)
    words = ("exec", scenario("needs", size="1 MB"), "--out", tmp_path / "runs")
    named = (home / ".netrc", home / "Documents" / "passwords.kdbx")
    done = call(tmp_path, *words, "--share", home / ".ssh", "--", tool, *named)
    assert done.out == "a module\nsecret of .netrc\nsecret of Documents/passwords.kdbx\n", done.err
    script = f"cat {home}/.ssh/config"
    done = call(tmp_path, *words, "--share", home / ".ssh", "--", "sh", "-c", script)
    assert done.out == "secret of .ssh/config\n"
    assert "hidden" not in done.err


def test_what_is_missing_because_it_is_hidden_is_said(
    scenario: ScenarioFile, home: Path, tmp_path: Path
) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\nexec cat {home}/.netrc\n")
    tool.chmod(0o755)
    says = f"linklab: {home}/.netrc is hidden in the guest; --share {home}/.netrc shows it\n"
    words = ("exec", scenario("said", size="1 MB"), "--out", tmp_path / "runs")
    for program in ([tool], ["sh", "-c", f"cat {home}/.netrc"]):
        done = call(tmp_path, *words, "--", *program)
        assert done.code == 1
        assert done.err.count(says) == 1
    shared = call(tmp_path, *words, "--share", home / ".netrc", "--", tool)
    assert (shared.code, shared.out) == (0, "secret of .netrc\n")
    missing = call(tmp_path, *words, "--share", home / "none", "--", tool)
    assert missing.code == 2
    assert missing.err == f"linklab: --share {home}/none: no such file or directory\n"


def test_linklab_itself_may_lie_in_a_home(
    fence: str, scenario: ScenarioFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """linklab's package, profiles, client and cache, and the current directory."""
    file = scenario("mine", size="1 MB")
    before = call(tmp_path, "run", file, "--json").json["figures"]
    monkeypatch.setenv("LINKLAB_CACHE", str(cache_dir()))
    for home in (REPOSITORY.parent, cache_dir().parent):
        monkeypatch.setenv("HOME", str(home))
        assert call(tmp_path, "run", file, "--json").json["figures"] == before
        # A checkout whose whole path the command has is shown by `conftest.command`.
        parent, name = shlex.quote(str(REPOSITORY.parent)), shlex.quote(REPOSITORY.name)
        script = f"cd {parent}; cat {name}/Makefile; multilink version"
        done = call(tmp_path, "exec", file, "--", "sh", "-c", script)
        homes = (home, Path("/home"), Path("/root"), Path(pwd.getpwuid(os.getuid()).pw_dir))
        is_hidden = any(one in REPOSITORY.parents for one in homes if one != Path("/"))
        assert ("multilink" in done.out, "lint:" in done.out) == (True, not is_hidden)


def test_the_host_falls_into_no_trap(
    fence: str, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text('{"a secret": 1}')
    script = LEAVE_TRAPS.format(outside=outside)
    linklab("exec", scenario("traps", size="1 MB"), "--", "sh", "-c", script)
    (run_dir,) = (tmp_path / "runs").iterdir()
    for path in run_dir.rglob("*"):
        assert path.is_file(), path
        assert not path.is_symlink(), path
        assert path.stat().st_mode & 0o7000 == 0, path
    for words in (("plot", run_dir), ("publish", run_dir, "--output", tmp_path / "out.om")):
        assert "a secret" not in "".join(vars(linklab(*words))[name] for name in ("out", "err"))
    assert (outside / "victim").read_text() == '{"a secret": 1}'


@needs_open_checkout
@pytest.mark.skipif(os.geteuid() != 0, reason="everything else is a user's run already")
def test_a_user_without_rights_gets_the_same_figures(
    fence: str, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    file = scenario("user", size="5 MB")
    mine = linklab("run", file, "--json")
    shared = Path("/tmp", f"linklab-test-{os.getpid()}")
    try:
        shutil.copytree(cache_dir() / "kernel", shared / "kernel")
        shutil.copytree(cache_dir() / "image", shared / "image", symlinks=True)
        shutil.copy(file, shared)
        subprocess.run(["chown", "-R", "12345", str(shared)], check=True)
        done = ran(
            [
                "setpriv",
                "--reuid",
                "12345",
                "--regid",
                "12345",
                "--clear-groups",
                "--no-new-privs",
                "--bounding-set=-all",
                *command("run", file.name, "--json"),
            ],
            cwd=shared,
            env={**environment(), "HOME": str(shared), "LINKLAB_CACHE": str(shared)},
        )
    finally:
        shutil.rmtree(shared, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["figures"] == mine.json["figures"]
