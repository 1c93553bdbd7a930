"""A program in the guest that is out for the host: what it can write, read and leave behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, Linklab, command, environment
from linklab.core.paths import cache_dir
from linklab.live import token
from linklab.places.guest import confinement

ScenarioFile = Callable[..., Path]

OUT_OF_THE_RUN_DIRECTORY = """
cd /run/linklab/run
mkdir a /tmp/again; touch a/victim; cd a
mount -t hostfs none /tmp/again -o /proc/self/cwd
rm -r /tmp/again/a; ln -s {outside} /tmp/again/a
echo written > new && echo made
echo changed > victim && echo changed
mkdir directory && echo made
"""
"""Where the kernel still sees the directory `a`, the host finds a link to another one."""

READ_ALL = """
mkdir /tmp/host; mount -t hostfs none /tmp/host -o /proc
cat /tmp/host/{process}/root/etc/passwd
for file in /etc/shadow {home}/.ssh/id {home}/.netrc {cache}/live/* {cache}/authority/ca.key; do
    cat $file
done
cat {home}/read $LINKLAB_CA
"""

LEAVE_TRAPS = """
cd /run/linklab/run
for name in client.json summary.json error; do ln -s {outside}/victim $name; done
mkfifo queues.jsonl.new; mv queues.jsonl.new queues.jsonl
chmod 4755 run.json; true
"""


@pytest.fixture(params=["namespaces", "landlock"])
def fence(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Guests get this one; the other, because no namespaces are to be had."""
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
    assert (outside / "victim").read_text() == "the host's"


def test_a_guest_cannot_read_secrets_nor_processes(
    fence: str, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("LINKLAB_CACHE", str(cache_dir()))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    for name in (".ssh/id", ".netrc", "read"):
        (tmp_path / name).write_text(f"content of {name}\n")
    script = READ_ALL.format(home=tmp_path, cache=cache_dir(), process=os.getpid())
    nowhere = ("127.0.0.1", 0)
    token.keep(nowhere, "of a live lab")
    try:
        done = linklab("exec", scenario("read", size="1 MB"), "--", "sh", "-c", script)
    finally:
        token.forget(nowhere, "of a live lab")
    certificate = (cache_dir() / "authority" / "ca.pem").read_text()
    assert done.out == f"content of read\n{certificate}", done.err


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


@pytest.mark.skipif(os.geteuid() != 0, reason="everything else is a user's run already")
def test_a_user_without_rights_gets_the_same_figures(
    fence: str, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    if not all(path.stat().st_mode & 0o1 for path in REPOSITORY.parents):
        pytest.skip("nobody may enter this checkout")
    file = scenario("user", size="5 MB")
    mine = linklab("run", file, "--json")
    shared = Path("/tmp", f"linklab-test-{os.getpid()}")
    try:
        shutil.copytree(cache_dir() / "kernel", shared / "kernel")
        shutil.copytree(cache_dir() / "image", shared / "image", symlinks=True)
        shutil.copy(file, shared)
        subprocess.run(["chown", "-R", "12345", str(shared)], check=True)
        done = subprocess.run(
            ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups",
             *command("run", file.name, "--json")],
            cwd=shared, capture_output=True, text=True, check=False, timeout=300,
            env={**environment(), "HOME": str(shared), "LINKLAB_CACHE": str(shared)},
        )  # fmt: skip
    finally:
        shutil.rmtree(shared, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["figures"] == mine.json["figures"]
