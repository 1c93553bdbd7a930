"""What the client asks for while its connections are in slow start, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Linklab, lines

CONNECTIONS = 6
OPENING_BYTES = 32 << 10


@pytest.mark.parametrize(("rtt", "orders"), [("100 ms", 2 * CONNECTIONS), ("10 ms", CONNECTIONS)])
def test_far_links_are_asked_for_more_before_the_first_bytes_can_be_read(
    linklab: Linklab, scenario: Callable[..., Path], rtt: str, orders: int
) -> None:
    file = scenario(
        "start",
        size="1 MB",
        wifi=f"down: 15 Mbit/s, up: 5 Mbit/s, rtt: {rtt}, queue: 250 kB",
        lte="down: 12 Mbit/s, up: 4 Mbit/s, rtt: 500 ms, queue: 250 kB",
    )
    done = linklab("run", file, "-a", "adaptive", "--json")
    assert done.code == 0, done.err
    events = lines(Path(done.json["run_dir"]) / "client.jsonl")
    first = next(at for at, event in enumerate(events) if event["event"] == "first_byte")
    asked = [event["length"] for event in events[:first] if event["event"] == "request"]
    assert asked == orders * [OPENING_BYTES]
