from pathlib import Path

import psutil
import pytest

from linklab.realtime.core_load import CoreLoad


@pytest.fixture
def stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/proc/stat of a machine of two cores, which a test may rewrite."""
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr("os.sysconf", lambda _: 2)
    return tmp_path / "stat"


def write(stat: Path, core0: str, core1: str = "0 0 0 0 0 0 0 0 0 0") -> None:
    both = [str(int(a) + int(b)) for a, b in zip(core0.split(), core1.split(), strict=True)]
    stat.write_text(f"cpu  {' '.join(both)}\ncpu0 {core0}\ncpu1 {core1}\nintr 1 2 3\n")


def test_the_share_since_the_last_call(stat: Path) -> None:
    write(stat, "0 0 0 100 0 0 0 0 0 0")
    load = CoreLoad(0)
    write(stat, "50 0 20 105 5 0 0 20 0 0", "0 0 0 900 0 0 0 0 0 0")
    assert load.ratio() == pytest.approx(0.9)
    assert load.ratio() == 0.0
    write(stat, "50 0 20 205 5 0 0 20 0 0")
    assert load.ratio() == pytest.approx(0.0)


def test_what_guests_of_this_machine_take_counts_once(stat: Path) -> None:
    write(stat, "0 0 0 0 0 0 0 0 0 0")
    load = CoreLoad(0)
    write(stat, "60 20 0 20 0 0 0 0 50 10")
    assert load.ratio() == pytest.approx(0.8)


def test_all_cores_together(stat: Path) -> None:
    write(stat, "0 0 0 0 0 0 0 0 0 0")
    load = CoreLoad(None)
    write(stat, "100 0 0 0 0 0 0 0 0 0", "0 0 0 100 0 0 0 0 0 0")
    assert load.ratio() == pytest.approx(0.5)


def test_a_core_is_not_mistaken_where_some_are_off(
    stat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", lambda _: 4)
    write(stat, "0 0 0 0 0 0 0 0 0 0")
    load = CoreLoad(1)
    write(stat, "100 0 0 0 0 0 0 0 0 0", "0 0 0 100 0 0 0 0 0 0")
    assert load.ratio() == pytest.approx(0.5)
