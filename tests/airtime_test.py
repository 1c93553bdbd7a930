"""Tests what Wi-Fi's uplinks carry among other stations, against 802.11g's air time."""

from pathlib import Path

from air_time import (
    AIM_FRAMES,
    over_frames,
    probe,
    random_cells,
)
from conftest import Linklab, succeeded


def test_uplinks_carry_what_their_air_allows(linklab: Linklab, tmp_path: Path) -> None:
    cells = random_cells(1)
    run_dir = succeeded(linklab, "exec", *probe(tmp_path / "air.yaml", cells)).run_dir
    over = [over_frames(run_dir, *cell) for cell in enumerate(cells)]
    assert all(abs(one) <= AIM_FRAMES for one in over), over
