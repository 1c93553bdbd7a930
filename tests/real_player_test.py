"""Tests GStreamer as a client: the example of the handbook plays a film of four bitrates over HLS."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import REPOSITORY, Linklab, nightly, program, ran

PLAYER = REPOSITORY / "emulator" / "examples" / "player"

pytestmark = nightly

SCENARIO = """\
name: film
payload: {size: 1 kB}
links:
  wifi: {down: 30 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}
  lte: {down: 15 Mbit/s, up: 5 Mbit/s, rtt: 60 ms}
events:
  - {at: 15 s, link: wifi, down: 2 Mbit/s}
  - {at: 30 s, link: wifi, down: 30 Mbit/s}
"""


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a film of a minute."""
    for name in ("ffmpeg", "gst-launch-1.0", "nginx"):
        program(name)
    place = tmp_path_factory.mktemp("film")
    assert ran([PLAYER / "film", place]).returncode == 0
    return place


def played(linklab: Linklab, film: Path, *before: Path) -> Path:
    """Plays the film in a lab, behind the programs `before`. Returns the run directory."""
    scenario = film / "film.yaml"
    scenario.write_text(SCENARIO)
    server = f"{PLAYER / 'serve'} {film}"
    url = "http://{address}:{port}/master.m3u8"
    options = ["--share", film, "--json", "--server", server]
    done = linklab("exec", scenario, *options, "--", *before, PLAYER / "play.py", url)
    assert done.code == 0, done.err
    return done.run_dir


def test_a_player_follows_a_link_and_repeats_itself(linklab: Linklab, film: Path) -> None:
    done = played(linklab, film)
    seen = json.loads((done / "client.out").read_text())
    assert seen["error"] == ""
    assert 0 < seen["start_s"] < 2
    assert seen["end_s"] > 60
    rates = {one["at_s"]: one["rate_bps"] for one in seen["rates"]}
    before, cut, after = (
        [rate for at_s, rate in rates.items() if first <= at_s < last]
        for first, last in ((0, 15), (15, 30), (30, 62))
    )
    assert max(before) == max(after) > 9_000_000
    assert max(cut) < 2_000_000
    asked = (done / "server.out").read_text()
    shutil.rmtree(done)
    again = played(linklab, film)
    assert json.loads((again / "client.out").read_text()) == seen
    assert (again / "server.out").read_text() == asked


def test_a_proxy_brings_its_segments_over_both_links(linklab: Linklab, film: Path) -> None:
    done = played(linklab, film, PLAYER / "over-both")
    received = json.loads((done / "outcome.json").read_text())["received_bytes"]
    assert min(received.values()) > 5_000_000
