"""Tests showing.py."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from linklab.runs.job import SCENARIO_FILE
from linklab.testing import showing


def test_the_page_has_runs_that_two_tests_made_alike_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`linklab report` refuses the same run twice."""
    runs = []
    for number, content in enumerate(("name: a", "name: a", "name: b")):
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / SCENARIO_FILE).write_text(content)
        runs.append({"run": "links curl seed 1", "run_dir": str(directory)})
    called: list[list[Any]] = []

    def run(words: list[Any], **_: Any) -> subprocess.CompletedProcess[str]:
        called.append(words)
        return subprocess.CompletedProcess(words, 2, stderr="refused")

    monkeypatch.setattr(subprocess, "run", run)
    assert "refused" in showing.write_page(tmp_path / "page.html", runs)
    assert called[0][4:6] == [str(tmp_path / "0"), str(tmp_path / "2")]
