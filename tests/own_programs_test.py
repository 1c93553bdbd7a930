"""Tests the user's own programs, which are found by the same rule on every host of the lab."""

import os
import re
from pathlib import Path

import pytest
from conftest import Linklab, ScenarioFile, program
from free_ports import free_port
from user_terminal import UserTerminal

SAY = 'echo "$0 $VIRTUAL_ENV $LANG"'


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a program of the user's on PATH that prints its name and its environment. Another one
    beside it has the name of a system program."""
    directory = tmp_path / "my programs"
    directory.mkdir()
    for name, words in {
        "mytool": SAY,
        "python3": "echo not the machine\\'s",
        "myserver": f'{SAY}; exec {program("python3")} -m http.server "$LINKLAB_PORT"',
    }.items():
        (directory / name).write_text(f"#!/bin/sh\n{words}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", "/my/venv")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("MY_TOKEN", "secret")
    return directory / "mytool"


def said(tool: Path) -> str:
    return f"{tool} /my/venv C.UTF-8\n"


def test_a_client_is_found_on_the_user_s_path(
    linklab: Linklab, scenario: ScenarioFile, tool: Path
) -> None:
    file = scenario("found", size="1 MB")
    assert linklab("exec", file, "--", "mytool").out == said(tool)
    script = "mytool; python3; env"
    out = linklab("exec", file, "--", "sh", "-c", script).out
    assert out.startswith(f"{said(tool)}not the machine's\n")
    assert "secret" not in out


def test_a_server_is_too(linklab: Linklab, scenario: ScenarioFile, tool: Path) -> None:
    file = scenario("served", size="1 MB")
    script = "cat $LINKLAB_RUN_DIR/server.out >/dev/stdout"
    done = linklab("exec", file, "--server", "myserver", "--", "sh", "-c", script)
    assert done.out == said(tool.with_name("myserver")), done.err


def test_a_suite_s_is_too(
    linklab: Linklab, scenario: ScenarioFile, tool: Path, tmp_path: Path
) -> None:
    scenario("mine", size="1 MB")
    suite = tmp_path / "suite.yaml"
    text = "name: suite\nscenarios: [{scenario: ./mine.yaml}]\nalgorithms: [own]\nverify: 0\n"
    suite.write_text(f"{text}exec: [{{name: own, command: fetch}}]\n")
    missing = linklab("regress", suite, "--update", "--reason", "new")
    assert missing.code == 2
    assert f"linklab: fetch: no such program; looked in {tool.parent}, /" in missing.err
    fetch = tool.with_name("fetch")
    fetch.write_text('#!/bin/sh\nexec curl -sSf -o "$LINKLAB_OUTPUT" "$LINKLAB_URL"\n')
    fetch.chmod(0o755)
    made = linklab("regress", suite, "--update", "--reason", "new")
    assert made.code == 0, made.err


@pytest.mark.one_at_a_time
def test_a_shell_s_are_too(tmp_path: Path, scenario: ScenarioFile, tool: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    words = ("shell", scenario("ashore", size="1 MB"), "--listen", listen, "--place", "guest")
    with UserTerminal(tmp_path, *words, "--", "mytool") as user:
        user.expect(re.escape(said(tool).strip()))
        assert user.end() == 0
    with UserTerminal(tmp_path, *words, "--", "none") as user:
        user.expect(f"none: no such program; looked in {tool.parent}, /")
        assert user.end() == 2
