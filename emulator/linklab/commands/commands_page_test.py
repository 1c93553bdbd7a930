"""Tests that the page of commands matches the code, and that the man pages are complete."""

import argparse
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from linklab.commands import cli

HANDBOOK = Path(__file__).parents[2] / "handbook"
MADE = runpy.run_path(str(HANDBOOK / "commands.py"))


def test_the_page_of_the_commands_is_of_the_code() -> None:
    page = HANDBOOK / "reference" / "commands.md"
    assert page.read_text() == MADE["markdown"](), "python emulator/handbook/commands.py"


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {
        max(action.option_strings, key=len)
        for action in parser._actions
        if action.option_strings and action.help != argparse.SUPPRESS
    }


def test_every_command_has_a_man_page_with_its_options() -> None:
    pages = MADE["manual"]()
    commands = cli.commands_of(cli.parser(whole=True))
    assert set(pages) == {"linklab", *(f"linklab-{name}" for name in commands)}
    for name, parser in commands.items():
        assert f"linklab-{name}(1)" in pages["linklab"]
        said = set(re.findall(r"-{1,2}[a-z][a-z-]*", pages[f"linklab-{name}"]))
        assert options_of(parser) - said == set()


def test_pages_have_a_version_and_a_month(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("LINKLAB_VERSION", "1.2.3")
    for name, page in MADE["manual"]().items():
        first = f'% "{name.upper()}" "1" "Nov 2023" "linklab 1.2.3" "linklab"\n'
        assert page.startswith(first)


def test_words_are_not_taken_for_markdown() -> None:
    assert MADE["escaped"]("a_b <c> `d_e` *") == r"a\_b \<c\> `d_e` \*"


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_pages_are_made_of_both_programs(tmp_path: Path) -> None:
    setup = HANDBOOK.parent / "setup" / "manual"
    subprocess.run([setup, sys.executable, tmp_path], check=True, capture_output=True)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"linklab.1", "linklab-run.1", "multilink.1", "multilink-get.1"}
    assert all(name.endswith(".1") for name in names)
    shown = subprocess.run(
        ["man", "--warnings", "-l", tmp_path / "linklab-compare.1"],
        capture_output=True,
        text=True,
        check=True,
        env={"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    assert shown.stderr == ""
    assert "linklab-compare - run several algorithms" in shown.stdout
    assert "--algorithms NAMES" in " ".join(shown.stdout.split())
