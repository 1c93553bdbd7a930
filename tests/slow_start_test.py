"""Tests what the client does during slow start, in virtual time."""

import pytest
from conftest import Linklab, ScenarioFile, lines, succeeded

CONNECTIONS = 6
FILE_BYTES = 1_000_000
OPENING_BYTES = 32 << 10


@pytest.mark.parametrize(("rtt", "more"), [("100 ms", CONNECTIONS), ("10 ms", 0)])
def test_far_links_are_asked_for_more_before_the_first_bytes_can_be_read(
    linklab: Linklab, scenario: ScenarioFile, rtt: str, more: int
) -> None:
    """One connection asks for the whole file, the others for two openings when that is answered."""
    file = scenario(
        "start",
        size=f"{FILE_BYTES} B",
        wifi=f"down: 15 Mbit/s, up: 5 Mbit/s, rtt: {rtt}, queue: 250 kB",
        lte="down: 12 Mbit/s, up: 4 Mbit/s, rtt: 500 ms, queue: 250 kB",
    )
    done = succeeded(linklab, "run", file, "-a", "adaptive")
    events = lines(done.run_dir / "client.jsonl")
    first = next(at for at, event in enumerate(events) if event["event"] == "first_byte")
    asked = [event["length"] for event in events[:first] if event["event"] == "request"]
    others = (CONNECTIONS - 1) * [2 * OPENING_BYTES]
    assert asked == [FILE_BYTES, *others, *more * [OPENING_BYTES]]


@pytest.mark.parametrize("away", ["carrier: down", "outage: true"])
def test_a_link_that_is_back_gets_new_connections_at_once(
    linklab: Linklab, scenario: ScenarioFile, away: str
) -> None:
    file = scenario(
        "back",
        size="12 MB",
        wifi="down: 15 Mbit/s, up: 5 Mbit/s, rtt: 100 ms, queue: 250 kB",
        lte="down: 5 Mbit/s, up: 5 Mbit/s, rtt: 100 ms, queue: 250 kB",
        more=f"events:\n  - {{at: 3 s, link: wifi, {away}, for: 2 s}}\n",
    )
    done = succeeded(linklab, "run", file, "-a", "adaptive")
    events = lines(done.run_dir / "client.jsonl")
    connected = [
        event
        for event in events
        if event["event"] == "connected" and event["link"] == "wifi" and event["t_ns"] >= 5e9
    ]
    assert len(connected) >= CONNECTIONS
    # The first connection is asked at most a queue's half round trip later, and answers a round
    # trip later. Kept connections go on with that. The others are ready after two round trips of
    # TCP and TLS.
    assert connected[0]["tcp_ns"] == 0
    assert connected[0]["t_ns"] < 5.2e9
    assert connected[CONNECTIONS - 1]["t_ns"] < connected[0]["t_ns"] + 0.3e9
