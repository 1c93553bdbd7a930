"""Multipath TCP of the guest's kernel, in virtual time: which subflow carried what."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Linklab, lines

ScenarioFile = Callable[..., Path]

SIZE_BYTES = 20_000_000


def downloaded(linklab: Linklab, file: Path, who: str) -> tuple[Any, Path]:
    """The figures and the directory of a run."""
    done = linklab("run", file, "-a", who, "--json")
    assert done.code == 0, done.err
    return done.json["figures"], Path(done.json["run_dir"])


def by_link(run_dir: Path) -> dict[str, dict[str, Any]]:
    """The subflow of each link: there is one."""
    subflows = lines(run_dir / "subflows.jsonl")
    assert len({one["connection"] for one in subflows}) == 1
    found = {one["link"]: one for one in subflows}
    assert len(found) == len(subflows)
    return found


@pytest.mark.parametrize(
    ("who", "first"), [("mptcp", "wifi"), ("mptcp-wifi", "wifi"), ("mptcp-lte", "lte")]
)
def test_subflows_carry_it_all_and_the_first_takes_the_link_that_it_is_told(
    linklab: Linklab, scenario: ScenarioFile, who: str, first: str
) -> None:
    file = scenario("multi", size="20 MB")
    figures, run_dir = downloaded(linklab, file, who)
    subflows = by_link(run_dir)
    assert {link: one["endpoint"] for link, one in subflows.items() if not one["endpoint"]} == {
        first: 0
    }
    assert {one["state"] for one in subflows.values()} == {"open"}
    carried = {link: one["received_bytes"] for link, one in subflows.items()}
    # TLS adds little, and nothing is lost here that would be sent over both.
    assert SIZE_BYTES < sum(carried.values()) < 1.01 * SIZE_BYTES
    on_the_wire = json.loads((run_dir / "outcome.json").read_bytes())["received_bytes"]
    for link, count in carried.items():
        assert 0.93 < count / on_the_wire[link] < 0.97, link  # Headers of frames are the rest.
        assert figures["links"][link]["share"] == pytest.approx(
            count / sum(carried.values()), abs=0.002
        )
    told = json.loads((run_dir / "mptcp.json").read_bytes())
    assert "LIA" in told["note"]
    for host in ("client", "server"):
        settings = told[host]["settings"]
        assert settings["net/mptcp/path_manager"] == "kernel"
        assert settings["net/mptcp/scheduler"] == "default"
        assert settings["net/ipv4/tcp_congestion_control"] == "cubic"
    assert told["client"]["counters"]["MPJoinSynTx"] == 1
    assert told["server"]["counters"]["MPJoinAckRx"] == 1


def test_a_backup_carries_nothing_while_the_first_link_can(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    figures, run_dir = downloaded(linklab, scenario("backup", size="20 MB"), "mptcp-backup")
    subflows = by_link(run_dir)
    assert (subflows["wifi"]["state"], subflows["lte"]["state"]) == ("open", "backup")
    assert subflows["wifi"]["received_bytes"] > SIZE_BYTES
    assert subflows["lte"]["received_bytes"] == 0
    alone, _ = downloaded(linklab, scenario("alone", size="20 MB"), "curl-wifi")
    assert figures["download_s"] == pytest.approx(alone["download_s"], rel=0.02)


def test_a_backup_carries_it_when_the_first_link_cannot(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario(
        "gone", size="20 MB", more="events: [{at: 500 ms, link: wifi, carrier: down}]\n"
    )
    figures, run_dir = downloaded(linklab, file, "mptcp-backup")
    subflows = by_link(run_dir)
    assert subflows["lte"]["received_bytes"] > 0.5 * SIZE_BYTES
    assert figures["download_s"] < 10


def test_a_run_over_multipath_tcp_repeats_exactly(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario(
        "again",
        wifi="down: 20 Mbit/s, up: 10 Mbit/s, rtt: 20 ms, loss: 0.3 %, queue: 100 kB",
    )
    one, other = (downloaded(linklab, file, "mptcp-lte") for _ in range(2))
    assert one[0] == other[0]
    for name in ("subflows.jsonl", "mptcp.json", "queues.jsonl"):
        assert (one[1] / name).read_bytes() == (other[1] / name).read_bytes()
