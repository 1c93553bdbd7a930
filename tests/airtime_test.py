"""Tests what Wi-Fi's uplinks carry among other stations, against 802.11g's air time."""

from pathlib import Path

import pytest
from air_time import (
    AIM_FRAMES,
    Cell,
    bianchi_bps,
    over_frames,
    probe,
    random_cells,
    stated_bps,
)
from conftest import Linklab


def test_uplinks_carry_what_their_air_allows(linklab: Linklab, tmp_path: Path) -> None:
    cells = random_cells(1)
    words = probe(tmp_path / "air.yaml", cells)
    done = linklab(*words[:2], "--json", *words[2:])
    assert done.code == 0, done.err
    over = [over_frames(done.run_dir, *cell) for cell in enumerate(cells)]
    assert all(abs(one) <= AIM_FRAMES for one in over), over


def test_a_station_alone_does_not_collide() -> None:
    """Bianchi's model then has the same mean backoff. It rounds up to whole symbols of 4 µs."""
    for mbps in (6, 54):
        ratio = stated_bps(Cell(mbps, 0)) / bianchi_bps(Cell(mbps, 0))
        assert ratio == pytest.approx(1, abs=0.011)
    assert bianchi_bps(Cell(54, 10)) < stated_bps(Cell(54, 10)) / 1.1
