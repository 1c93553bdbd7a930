import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from linklab.lab.network.hosts import Host, LabError
from linklab.lab.programs import server
from linklab.lab.programs.server import Server, least_user


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that everybody may enter, as pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


def made(path: Path, mode: int = 0o644) -> Path:
    path.write_text("content")
    path.chmod(mode)
    return path


def test_a_file_that_everybody_can_read_is_served_by_nobody(open_directory: Path) -> None:
    assert least_user(made(open_directory / "file")) == "nobody"


def test_else_its_owner_serves_it(open_directory: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert least_user(made(open_directory / "file", 0o640)) == me
    file = made(open_directory / "other")
    open_directory.chmod(0o700)
    assert least_user(file) == me


def test_an_owner_without_a_name_is_said(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nameless)
    file = made(open_directory / "file", 0o600)
    with pytest.raises(LabError, match=rf"only user {os.geteuid()}, .*set LINKLAB_CACHE"):
        least_user(file)


class FakeHost:
    """Starts a shell script whatever it is asked for."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.asked: list[str] = []
        self.started: subprocess.Popen[bytes] | None = None

    def start(
        self, argv: list[str], *, stdout: IO[bytes], stderr: IO[bytes], directory: Path
    ) -> subprocess.Popen[bytes]:
        self.asked = argv
        self.started = subprocess.Popen(
            ["sh", "-c", self.script], stdout=stdout, stderr=stderr, cwd=directory
        )
        return self.started


def start(host: FakeHost, run_dir: Path, *, mptcp: bool = False) -> Server:
    payload = made(run_dir / "payload.bin")
    return server.start(
        cast(Host, host), payload, payload, payload, run_dir, mptcp=mptcp, addresses=("10.0.0.1",)
    )


def test_it_is_started_once_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(server, "_listens", lambda host, address: next(answers))
    host = FakeHost("sleep 60")
    running = start(host, tmp_path, mptcp=True)
    try:
        running.check()
        assert host.asked[:3] == ["mptcpize", "run", "h2o"]
        assert (tmp_path / "h2o.conf").exists()
    finally:
        running.stop()
    assert running.process.returncode is not None
    running.stop()  # A second time is no error.


def test_a_server_that_dies_at_once_is_said_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_listens", lambda host, address: False)
    with pytest.raises(LabError, match=r"^H2O ended with 3: cannot bind$"):
        start(FakeHost("echo hello; echo cannot bind >&2; exit 3"), tmp_path)


def test_a_server_that_never_listens_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_listens", lambda host, address: False)
    monkeypatch.setattr(server, "START_TIMEOUT_S", 0.02)
    host = FakeHost("exec sleep 60")
    with pytest.raises(LabError, match="does not listen on port 443: it said nothing"):
        start(host, tmp_path)
    assert host.started is not None
    assert host.started.returncode is not None


def test_stop_waits_for_the_end(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    Server(process, tmp_path / "log").stop()
    assert process.returncode == -15, "who ends when he is asked to is not killed"
