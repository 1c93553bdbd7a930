import os
from pathlib import Path

import pytest

from linklab.core.paths import MULTILINK
from linklab.lab.network.services import OwnServer
from linklab.runs import programs
from linklab.runs.programs import ProgramError


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program on the PATH."""
    made = tmp_path / "bin" / "mytool"
    made.parent.mkdir()
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/empty:bin:/usr/bin:/bin")
    return made


def test_a_program_is_found_on_the_user_s_path(tool: Path) -> None:
    """Even if that has a relative directory: in the lab one stands elsewhere."""
    assert programs.located(["mytool", "-x", "mytool"]) == (str(tool), "-x", "mytool")
    assert programs.server_located(OwnServer(("mytool",), 80)) == OwnServer((str(tool),), 80)
    assert programs.server_located(None) is None


def test_a_path_is_one_from_where_the_user_stands(tool: Path) -> None:
    assert programs.located(["bin/mytool"]) == (str(tool),)
    assert programs.located([str(tool)]) == (str(tool),)


def test_a_link_to_a_program_keeps_its_name(tool: Path, tmp_path: Path) -> None:
    """A venv's Python knows by it where its packages are."""
    link = tmp_path / "bin" / "other"
    link.symlink_to(tool)
    assert programs.located(["other"]) == (str(link),)


def test_multilink_is_found_last(tool: Path) -> None:
    path = programs.search_path()
    assert path == [
        f"{tool.parents[1]}/empty",
        str(tool.parent),
        "/usr/bin",
        "/bin",
        str(MULTILINK.parent),
    ]


def test_what_is_filled_in_later_is_looked_for_later(tool: Path) -> None:
    assert programs.located(["{directory}/serve"]) == ("{directory}/serve",)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("none", r"^none: no such program; looked in .*/empty, .*/bin, /usr/bin, /bin, "),
        ("./none", "/none: no such program$"),
        ("./bin", "/bin is no program that can be executed$"),
        ("./text", "/text is no program that can be executed$"),
        ("./script", "/script: no such program as /venv/bin/python, which its first line names$"),
    ],
)
def test_what_cannot_be_started_is_said(
    tool: Path, tmp_path: Path, program: str, words: str
) -> None:
    (tmp_path / "text").touch(0o644)
    (tmp_path / "script").write_text("#!/venv/bin/python -I\n")
    (tmp_path / "script").chmod(0o755)
    with pytest.raises(ProgramError, match=words):
        programs.located([program])


def test_the_environment_is_what_programs_need_and_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("LANG", "LC_ALL", "TERM", "VIRTUAL_ENV", "GITHUB_TOKEN", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"of {name}")
    monkeypatch.setenv("PATH", "/bin")
    assert programs.environment() == {
        "PATH": f"/bin:{MULTILINK.parent}",
        "LANG": "of LANG",
        "LC_ALL": "of LC_ALL",
        "TERM": "of TERM",
        "VIRTUAL_ENV": "of VIRTUAL_ENV",
    }


def test_a_program_for_another_processor_gives_one_line(tmp_path: Path) -> None:
    """The guest's processor is x86-64 on every machine."""
    for_arm64 = tmp_path / "tool"
    for_arm64.write_bytes(b"\x7fELF\x02\x01" + bytes(12) + (183).to_bytes(2, "little") + bytes(44))
    for_arm64.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(f"#!{for_arm64}\n")
    for one in (for_arm64, script):
        with pytest.raises(ProgramError, match="tool is a program for arm64, .*GOARCH=amd64"):
            programs.require_x86_64([str(one)])


def test_a_program_of_a_guest_s_processor_is_left_alone(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/python\n")
    for one in (str(script), "{output}"):
        programs.require_x86_64([one])
