"""Tests in the guest, in virtual time, that what a user saved as a scenario happens when it runs."""

import random
from pathlib import Path

import linklab
import pytest
from conftest import SEEDS
from linklab import scenario
from linklab.core.records import EventRecord, LinkRecord, Tail
from linklab.lab.player.control import Command
from linklab.realtime.by_hand import Executed, saved

LAB = """name: saved
payload: {size: 200 kB}
links:
  wifi: {down: 4 Mbit/s, up: 2 Mbit/s, rtt: 20 ms}
  lte: {down: 2 Mbit/s, up: 1 Mbit/s, rtt: 40 ms}
"""

CHANGES = (
    ("rate", {"down_rate_bps": 3_000_000}),
    ("loss", {"loss_ratio": 0.01}),
    ("queue", {"queue_bytes": 60_000}),
    ("delay", {"rtt_s": 0.08}),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_change_of_a_lab_without_downloads_happens(tmp_path: Path, seed: int) -> None:
    """The lab stood idle for two minutes before. No client is faster than all links at once."""
    random_ = random.Random(seed)
    looks = sorted(random_.sample(range(1165, 1430), 6))
    chosen = [(number * 0.1, *random_.choice(CHANGES)) for number in looks]
    changes = [
        Executed(at_s, Command(link=random_.choice(["wifi", "lte"]), **values))
        for at_s, _, values in chosen
    ]
    from_s = round(chosen[0][0], 9)
    file = tmp_path / "by-me.yaml"
    file.write_text(saved(scenario.parse(LAB), changes, "by-me", "", from_s=from_s))
    done = linklab.run(file, "adaptive", out=tmp_path / "runs")
    happened = [
        (round(one.t_s, 3), one.link, one.kind) for one in Tail(done.path, EventRecord).read()
    ]
    (_, _, first), change = chosen[0], changes[0].command
    begun = {one.link: one for one in Tail(done.path, LinkRecord).read() if one.t_s == 0}
    for field, value in first.items():  # What is so from the beginning is no event.
        state = begun[change.link]
        assert value == (2 * state.delay_s if field == "rtt_s" else getattr(state, field))
    for (at_s, kind, _), one in zip(chosen[1:], changes[1:], strict=True):
        assert (round(at_s - from_s, 3), one.command.link, kind) in happened
