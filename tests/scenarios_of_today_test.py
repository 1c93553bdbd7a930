"""Downloads over every scenario of links of today, in the guest in virtual time.

`make test` runs one of two algorithms in each, in turn.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import TEST_ALL, Linklab, is_in_part, lines
from linklab import scenario
from linklab.scenario.finding import SCENARIOS

MOST_BYTES = 150_000_000 if TEST_ALL else 20_000_000
"""A part of each payload, so that the runs stay short."""

NAMES = scenario.names_in(SCENARIOS / "today")


def test_there_are_some() -> None:
    assert {"train", "leave-home", "elevator"} <= set(NAMES)


ALGORITHMS = ("adaptive", "alg3")


@pytest.mark.parametrize("name", NAMES)
def test_downloads_end_and_use_the_links(linklab: Linklab, tmp_path: Path, name: str) -> None:
    row = NAMES.index(name)
    some = [who for column, who in enumerate(ALGORITHMS) if is_in_part(row, column, 2)]
    one = scenario.find(name)
    size_bytes = min(one.payload.size_bytes, MOST_BYTES)
    file = tmp_path / f"{name}.yaml"
    file.write_text(
        scenario.to_yaml(replace(one, payload=replace(one.payload, size_bytes=size_bytes)))
    )
    done = linklab("compare", file, "-a", ",".join(some), "--json")
    assert done.code == 0, done.out + done.err
    (comparison,) = done.json["comparisons"]
    assert [row["algorithm"] for row in comparison["rows"]] == some
    for row in comparison["rows"]:
        assert row["failures"] == []
        assert sum(link["bytes"] for link in row["links"].values()) >= size_bytes
        assert 0 < row["efficiency"] <= 1.01


def test_what_interrupts_a_link_is_noted(linklab: Linklab, tmp_path: Path) -> None:
    """Pauses, the state of a 5G radio, and the technology of a link with dual connectivity."""
    file = tmp_path / "noted.yaml"
    file.write_text(
        "name: noted\npayload: {size: 40 MB}\nlinks:\n  5g:\n"
        "    {down: 100 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, rrc: {promotion: 100 ms},\n"
        "     endc: {down: 20 Mbit/s, up: 5 Mbit/s, rtt: 40 ms, nr: 1 s, lte: 500 ms, sigma: 0.1},\n"
        "     pauses: [{name: stall, per_minute: 60, median: 100 ms, p90: 200 ms}]}\n"
    )
    done = linklab("run", file, "-a", "single-5g", "--json")
    assert done.code == 0, done.out + done.err
    run_dir = Path(done.json["run_dir"])
    kinds = {one["kind"]: one.get("detail") for one in lines(run_dir / "events.jsonl")}
    assert {"pause", "pause-end", "technology", "rrc"} <= set(kinds)
    states = lines(run_dir / "links.jsonl")
    assert {one.get("technology") for one in states} == {"nr", "lte"}
    slow = [one for one in states if one["technology"] == "lte"]
    assert {(one["down_rate_bps"], one["delay_s"]) for one in slow} == {(20_000_000, 0.02)}
    stalled = [one for one in states if one.get("pause") == "stall"]
    assert stalled
    assert all(one["hold_down"] and one["hold_up"] for one in stalled)
