"""Tests of coreload.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from linklab.live import core_load
from linklab.live.core_load import CoreLoad, spent

STAT = """cpu  30 0 30 100 20 1 1 18 5 0
cpu0 10 0 10 50 10 0 0 0 0 0
cpu1 20 0 20 50 10 1 1 18 5 0
intr 1 2 3
"""


def test_idle_and_all_ticks_of_a_core_and_of_all() -> None:
    assert spent(STAT, 0) == (60, 80)
    assert spent(STAT, 1) == (60, 120)
    assert spent(STAT, None) == (120, 200)
    with pytest.raises(ValueError, match="no cpu2"):
        spent(STAT, 2)


def test_the_share_since_the_last_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(core_load, "FILE", stat)
    stat.write_text("cpu0 0 0 0 100 0 0 0 0 0 0\n")
    load = CoreLoad(0)
    stat.write_text("cpu0 50 0 20 110 0 0 0 20 0 0\n")
    assert load.ratio() == 0.9
    assert load.ratio() == 0.0
    stat.write_text("cpu0 50 0 20 210 0 0 0 20 0 0\n")
    assert load.ratio() == 0.0


def test_this_machine_has_a_load() -> None:
    assert 0.0 <= CoreLoad(None).ratio() <= 1.0
