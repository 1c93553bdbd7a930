import json
import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from linklab.commands import compare, exec, run
from linklab.commands.conftest import NETWORK, Runs, printed
from linklab.commands.options import UsageError
from linklab.lab.network.services import OwnServer
from linklab.runs.programs import ProgramError
from linklab.runs.visible_paths import ShareError


def test_a_program_of_the_user_s_is_reported(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.command = ["curl", "{url}"]
    assert exec.run(options) == 0
    read = printed(capsys)
    assert read["command"] == ["curl", "{url}"]
    assert read["error"] is None
    assert (read["exit_code"], read["elapsed_s"]) == (0, pytest.approx(0.1))
    assert read["received_bytes"] == NETWORK
    assert runs.requests[0].command == (shutil.which("curl"), "{url}")
    assert runs.requests[0].client is None


def test_a_server_of_the_user_s_is_asked_for(
    runs: Runs,
    options: Namespace,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "serve").touch(0o755)
    options.server, options.port = "./serve --dir '{directory} x' {port}", 8080
    assert exec.run(options) == 0
    here = str(Path("serve").absolute())
    wanted = OwnServer((here, "--dir", "{directory} x", "{port}"), 8080)
    assert runs.requests[0].server == wanted
    assert printed(capsys)["server"] == options.server


def test_what_is_shared_is_asked_for(
    runs: Runs, options: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options.share = [".", str(tmp_path)]
    assert exec.run(options) == 0
    assert runs.requests[0].share == (str(tmp_path), str(tmp_path))
    options.share = ["none"]
    with pytest.raises(ShareError, match=f"--share {tmp_path}/none: no such file or directory"):
        exec.run(options)


def test_nothing_is_shared_with_linklab_s_own_programs(
    runs: Runs, options: Namespace, tmp_path: Path
) -> None:
    options.share = [str(tmp_path)]
    for command in (run, compare):
        with pytest.raises(UsageError, match="--share goes with --server"):
            command.run(options)
    options.server = "sh"
    assert run.run(options) == 0
    assert compare.run(options) == 0
    assert [one.share for one in runs.requests] == [(str(tmp_path),)] * 2


@pytest.mark.parametrize(
    ("server", "port", "words"),
    [
        ("", None, "--server: an empty command"),
        ("serve 'x", None, "--server: .* is no command"),
        ("serve http://me:secret@there/", None, "--server: a URL .* holds a user or password"),
        (None, 80, "--port goes with --server"),
        ("no-such-server", None, "no-such-server: no such program; looked in /"),
    ],
)
def test_a_server_that_cannot_be_is_refused(
    runs: Runs, options: Namespace, server: str | None, port: int | None, words: str
) -> None:
    options.server, options.port = server, port
    with pytest.raises((UsageError, ProgramError), match=words):
        exec.run(options)
    assert runs.requests == []


def test_a_program_that_is_not_there_is_said_before_anything_begins(
    runs: Runs, options: Namespace
) -> None:
    options.command = ["mytool"]
    with pytest.raises(ProgramError, match="mytool: no such program; looked in /"):
        exec.run(options)
    assert runs.requests == []
    assert not options.out.exists()


def test_what_a_program_of_the_user_s_writes_is_passed_on_byte_for_byte(
    runs: Runs, options: Namespace, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    options.json = False
    runs.exit_code = lambda _: 7
    assert exec.run(options) == 1
    captured = capsysbinary.readouterr()
    assert captured.out == b"out \xff\x00"
    assert captured.err.startswith(b"place: host")
    assert b"errexit code 7 after 0.100 s; received: wifi 0.6 MB, lte 0.5 MB\n" in captured.err


def test_a_lab_that_failed_under_a_program_of_the_user_s_is_said(
    runs: Runs, options: Namespace, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    runs.error = lambda request: "H2O ended with -9"
    assert exec.run(options) == 1
    read = json.loads(capsysbinary.readouterr().out)
    assert (read["error"], read["scenario"], read["command"]) == (
        "H2O ended with -9",
        "small",
        ["curl"],
    )
    assert Path(read["run_dir"]).is_dir()
    assert [read[key] for key in ("exit_code", "elapsed_s", "received_bytes")] == [None] * 3
    options.json = False
    assert exec.run(options) == 1
    assert b"linklab: H2O ended with -9\n" in capsysbinary.readouterr().err
