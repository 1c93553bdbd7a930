"""Downloads over every scenario of links of today, in the guest in virtual time.

`make test` runs one of two algorithms in each, in turn.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import TEST_ALL, Linklab, lines, part_of
from linklab import scenario
from linklab.scenario.finding import SCENARIOS

MOST_BYTES = 150_000_000 if TEST_ALL else 10_000_000
"""A part of each payload, so that the runs stay short."""

NAMES = scenario.names_in(SCENARIOS / "today")
ALGORITHMS = ("adaptive", "alg3")


def test_there_are_some() -> None:
    assert {"train", "leave-home", "elevator"} <= set(NAMES)


HALVES = [
    (who, NAMES[(column + row) % 2 :: 2])
    for column, who in enumerate(ALGORITHMS)
    for row in part_of(range(2), 2)
]
"""Which algorithm downloads over which scenarios."""


@pytest.mark.parametrize(("who", "names"), HALVES)
def test_downloads_end_and_use_the_links(
    linklab: Linklab, tmp_path: Path, who: str, names: list[str]
) -> None:
    sizes = {}
    for name in names:
        one = scenario.find(name)
        sizes[name] = min(one.payload.size_bytes, MOST_BYTES)
        payload = replace(one.payload, size_bytes=sizes[name])
        (tmp_path / f"{name}.yaml").write_text(scenario.to_yaml(replace(one, payload=payload)))
    files = [tmp_path / f"{name}.yaml" for name in sizes]
    done = linklab("compare", *files, "-a", who, "--parallel", 1, "--json")
    assert done.code == 0, done.out + done.err
    rows = {one["scenario"]: one["rows"] for one in done.json["comparisons"]}
    assert rows.keys() == sizes.keys()
    for name, (row,) in rows.items():
        assert (row["algorithm"], row["failures"]) == (who, []), name
        assert sum(link["bytes"] for link in row["links"].values()) >= sizes[name]
        assert 0 < row["efficiency"] <= 1.01, name


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
    run_dir = done.run_dir
    kinds = {one["kind"]: one.get("detail") for one in lines(run_dir / "events.jsonl")}
    assert {"pause", "pause-end", "technology", "rrc"} <= set(kinds)
    states = lines(run_dir / "links.jsonl")
    assert {one.get("technology") for one in states} == {"nr", "lte"}
    slow = [one for one in states if one["technology"] == "lte"]
    assert {(one["down_rate_bps"], one["delay_s"]) for one in slow} == {(20_000_000, 0.02)}
    stalled = [one for one in states if one.get("pause") == "stall"]
    assert stalled
    assert all(one["hold_down"] and one["hold_up"] for one in stalled)
