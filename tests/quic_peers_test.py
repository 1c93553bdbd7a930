"""Tests the peers of multipath QUIC in virtual time. Only `make peers-quic` compiles them."""

import json

import pytest
from conftest import Linklab, ScenarioFile, succeeded
from linklab.runs import clients

SIZE_BYTES = 8_000_000


pytestmark = pytest.mark.lacks(
    not all(map(clients.is_compiled_here, ("noq", "tquic"))),
    "the peers of QUIC are not compiled (make peers-quic)",
)


@pytest.mark.parametrize("name", ["noq", "noq-bbr3", "tquic", "tquic-bbr"])
def test_a_download_takes_both_links_and_is_the_same_each_time(
    name: str, linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario(
        "both",
        size=f"{SIZE_BYTES} B",
        wifi="down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
        lte="down: 10 Mbit/s, up: 5 Mbit/s, rtt: 60 ms",
    )
    runs = [succeeded(linklab, "run", file, "-a", name) for _ in range(2)]
    first, again = (json.loads((one.run_dir / "outcome.json").read_text()) for one in runs)
    assert first == again
    assert first["output_bytes"] == SIZE_BYTES  # Another file's hash would be an error.
    received = first["received_bytes"]
    assert received["wifi"] > SIZE_BYTES / 2 > received["lte"] > SIZE_BYTES / 5
    least_s, least_of_wifi_s = SIZE_BYTES * 8 / 30e6, SIZE_BYTES * 8 / 20e6
    assert least_s < first["elapsed_ns"] / 1e9 < least_of_wifi_s


def test_on_one_link_the_other_carries_nothing(linklab: Linklab, scenario: ScenarioFile) -> None:
    run = succeeded(linklab, "run", scenario("one", size=f"{SIZE_BYTES} B"), "-a", "tquic-wifi")
    received = json.loads((run.run_dir / "outcome.json").read_text())["received_bytes"]
    assert received["wifi"] > SIZE_BYTES
    assert received["lte"] == 0
