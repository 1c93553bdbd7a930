import re
from pathlib import Path

import pytest

from linklab.core.paths import REPOSITORY
from linklab.places import host_programs
from linklab.places.host_programs import PROGRAMS, HostProgram

PAGE = REPOSITORY / "emulator" / "handbook" / "reference" / "systems.md"
PROGRAM = HostProgram("tool", "tools", "every run", "2.33", "`--new`")


@pytest.mark.parametrize(
    ("says", "obstacle"),
    [
        ("tool from tools 2.33", None),
        ("tool from tools 2.4.9", "version 2.4.9, but 2.33 is needed"),
        ("tool from tools 3.0", None),
        ("nothing of use", None),
    ],
)
def test_an_old_program_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, obstacle: str | None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host_programs.obstacle(PROGRAM) == "missing"
    (tmp_path / "tool").write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{says}"\n')
    (tmp_path / "tool").chmod(0o755)
    assert host_programs.obstacle(PROGRAM) == obstacle


def test_the_handbook_has_all_programs_with_their_oldest_versions() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (.+?) \| (\S+) \|", PAGE.read_text(), re.MULTILINE)
    assert rows == [(one.name, one.package, one.options, one.least) for one in PROGRAMS]


def test_a_missing_program_is_found_without_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host_programs.missing("outside") == "slirp4netns (missing)"
    (tmp_path / "slirp4netns").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "slirp4netns").chmod(0o755)
    assert host_programs.missing("outside") is None
    assert not (tmp_path / "started").exists()
