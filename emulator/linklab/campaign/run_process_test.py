import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from linklab.campaign import run_process
from linklab.core.paths import PYTHON_PATH

ANSWERS = """
import os, sys
from linklab.campaign.wire_format import receive, send
count = 0
while (parcel := receive(sys.stdin.buffer)) is not None:
    count += 1
    if parcel == b"changed" and count > 1:
        break
    if parcel == b"die":
        sys.exit("out of luck")
    send(sys.stdout.buffer, b"%d" % os.getpid())
    if parcel == b"last":
        break
"""
"""Stands for work.py: answers with its process id."""


@pytest.fixture(autouse=True)
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "answers.py").write_text(ANSWERS)
    monkeypatch.setattr(run_process, "_MODULE", "answers")
    monkeypatch.setattr(run_process, "PYTHON_PATH", f"{PYTHON_PATH}:{tmp_path}")
    yield
    for process in list(run_process._idle):
        run_process._drop(process)


def test_the_next_run_is_made_in_the_same_process() -> None:
    first = run_process.perform(b"a run")
    assert run_process.perform(b"another") == first
    assert Path(f"/proc/{int(first)}").exists()


def test_a_process_with_older_code_is_replaced() -> None:
    first = run_process.perform(b"a run")
    second = run_process.perform(b"changed")
    assert second.isdigit()
    assert second != first


def test_a_process_that_has_ended_is_replaced() -> None:
    first = run_process.perform(b"last")
    patience = time.monotonic() + 20
    while next(iter(run_process._idle)).is_alive() and time.monotonic() < patience:
        time.sleep(0.01)
    assert run_process.perform(b"a run") != first


def test_a_process_that_dies_is_quoted() -> None:
    with pytest.raises(RuntimeError, match="the run's process ended with 1: out of luck"):
        run_process.perform(b"die")
    assert run_process.perform(b"a run").isdigit()


def test_a_process_without_runs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_process, "IDLE_S", 0.01)
    process = int(run_process.perform(b"a run"))
    patience = time.monotonic() + 20
    while Path(f"/proc/{process}").exists() and time.monotonic() < patience:
        time.sleep(0.01)
    assert not Path(f"/proc/{process}").exists()
    assert not run_process._idle
