import re
import subprocess
from dataclasses import replace

import pytest

from linklab import scenario
from linklab.core.paths import MULTILINK
from linklab.runs import applications, page_objects
from linklab.runs.applications import APPLICATIONS
from linklab.scenario import ScenarioError
from linklab.scenario.workload import NAMES, MediaPlayer, Paced, Page, Rounds, Upload, Workload

WORKLOADS = {
    "player": Workload(player=MediaPlayer(4_800_000, segment_bytes=500_000)),
    "page": Workload(page=Page(objects=3)),
    "rounds": Workload(rounds=Rounds(100_000, 5_000, think_s=0.25)),
    "paced": Workload(paced=Paced(320_000, every_s=5.0)),
}


def said_of(workload: Workload) -> str:
    """What the client says of a workload's flags. Nobody listens where it is sent: of flags that it
    takes, that its connection is refused."""
    words = applications.flags(workload, 1_000_000)
    url = "http://127.0.0.1:9/x"
    done = subprocess.run(
        [MULTILINK, "workload", workload.name, url, "--size", "1000000B", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode in (1, 2)
    return done.stderr


@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_client_takes_the_flags_of_every_workload(name: str) -> None:
    assert WORKLOADS[name].name == name
    assert "connection refused" in said_of(WORKLOADS[name])


def test_a_scenario_s_player_varies_as_much_as_the_client_s() -> None:
    """One with 3 was valid, and all its runs failed: the client has its own bounds."""

    def of(variation: float) -> Workload:
        return Workload(player=MediaPlayer(4_800_000, variation=variation))

    bounds = re.search(r"allowed is (\S+) to (\S+)$", said_of(of(1e6)), re.M)
    assert bounds
    low, high = map(float, bounds.groups())
    for variation in (low, high):
        assert _read(variation) == of(variation)
        assert "connection refused" in said_of(of(variation))
    for variation in (low - 0.01, high + 0.01):
        with pytest.raises(ScenarioError, match="player.variation: "):
            _read(variation)
        assert "allowed is" in said_of(of(variation))


def _read(variation: float) -> Workload:
    """A scenario's workload, a player of so much variation."""
    return scenario.parse(
        "name: x\npayload: {size: 1 MB}\n"
        "links:\n  wifi: {down: 6 Mbit/s, up: 2 Mbit/s, rtt: 20 ms}\n"
        f"workload: {{player: {{rate: 4800 kbit/s, variation: {variation}}}}}\n"
    ).workload


def test_only_these_have_a_program() -> None:
    assert set(NAMES) - set(APPLICATIONS) == {"file", "upload"}
    for one in (Workload(), Workload(upload=Upload())):
        with pytest.raises(ValueError, match="is no workload of a program"):
            applications.flags(one, 1)


def test_a_player_s_flags() -> None:
    player = MediaPlayer(1_000_000, start_bytes=5, segment_s=2.0, variation=0.3, seed=9)
    words = applications.flags(Workload(player=player), 1)
    assert words[words.index("--start") + 1] == "5B"
    assert words[-6:] == ["--segment-duration", "2.0s", "--variation", "0.3", "--seed", "9"]


def test_sizes_of_a_page() -> None:
    page = Page()
    sizes = page_objects.sizes_bytes(page, 3_000_000)
    assert sizes == page_objects.sizes_bytes(page, 3_000_000)
    assert len(sizes) == 107
    assert sum(sizes) == 3_000_000
    assert sizes[:4] == [32_486, 14_764, 71_646, 54_513]
    mean = sum(sizes) / 107
    deviation = (sum((one - mean) ** 2 for one in sizes) / 107) ** 0.5
    assert 1.0 < deviation / mean < 3.0
    assert page_objects.sizes_bytes(replace(page, seed=2), 3_000_000) != sizes
    equal = page_objects.sizes_bytes(replace(page, variation=0.0), 3_000_000)
    assert max(equal) - min(equal) <= 1
    assert page_objects.sizes_bytes(page, 5) == [1] * 5
