"""Tests that a lab which is set back measures what a fresh one does, in virtual time to the digit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Linklab, part_of

PROGRAM = REPOSITORY / "tests" / "restored_lab.py"
OWN = """\
name: own
payload: {size: 1 MB}
links:
  wifi: {down: 20 Mbit/s, up: 10 Mbit/s, rtt: 20 ms, jitter: 2 ms, loss: 1 %, loss_burst: 3}
  lte:
    down: 12 Mbit/s
    up: 3 Mbit/s
    rtt: 60 ms
    jitter: 10 ms
    impair_down: {loss: 1 %, delay: 8 ms, jitter: 3 ms}
events:
  - {at: 400 ms, link: wifi, down: 5 Mbit/s, for: 700 ms}
  - {after: 300 kB, link: lte, cap: 8 Mbit/s}
"""
SHIPPED = "profiles/scenarios/today"
CASES = [
    (name, seed)
    for seed in range(1, 7)
    for name in ("own", "train", "leave-home", "starlink-motorway", "rural-home", "elevator")
]


@pytest.mark.parametrize(("name", "seed"), part_of(CASES, 5))
def test_a_lab_that_is_set_back_measures_what_a_fresh_one_does(
    linklab: Linklab, tmp_path: Path, name: str, seed: int
) -> None:
    """Each seed is another history of changes and downloads. Times are those of every part that a
    client received, in nanoseconds."""
    file = tmp_path / "own.yaml" if name == "own" else REPOSITORY / SHIPPED / f"{name}.yaml"
    if name == "own":
        file.write_text(OWN)
    done = linklab("exec", "static-80-50", "--", sys.executable, PROGRAM, file, seed)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["restored"] == found["fresh"], found["events"]
    assert found["restored states"] == found["fresh states"], found["events"]
    assert all(len(times) > 1 for times in found["fresh"].values())
