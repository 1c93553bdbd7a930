"""Tests Multipath TCP of the guest's kernel in virtual time: what each subflow carried."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Linklab, ScenarioFile, compared, downloaded, lines, queue

SIZE_BYTES = 20_000_000


def by_link(run_dir: Path) -> dict[str, dict[str, Any]]:
    """Returns the only subflow of each link."""
    subflows = lines(run_dir / "subflows.jsonl")
    assert len({one["connection"] for one in subflows}) == 1
    found = {one["link"]: one for one in subflows}
    assert len(found) == len(subflows)
    return found


def test_subflows_carry_it_all_and_the_first_takes_the_link_that_it_is_told(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    runs = compared(linklab, scenario("multi", size="20 MB"), who="mptcp,mptcp-lte")
    for who, first in (("mptcp", "wifi"), ("mptcp-lte", "lte")):
        _carried_it_all(*runs[f"multi-{who}"], first)


def _carried_it_all(figures: Any, run_dir: Path, first: str) -> None:
    subflows = by_link(run_dir)
    assert {link: one["endpoint"] for link, one in subflows.items() if not one["endpoint"]} == {
        first: 0
    }
    assert {one["state"] for one in subflows.values()} == {"open"}
    carried = {link: one["received_bytes"] for link, one in subflows.items()}
    # TLS adds little, and without losses nothing is sent twice.
    assert SIZE_BYTES < sum(carried.values()) < 1.01 * SIZE_BYTES
    on_the_wire = json.loads((run_dir / "outcome.json").read_bytes())["received_bytes"]
    for link, count in carried.items():
        assert 0.93 < count / on_the_wire[link] < 0.97, link  # The rest are headers of frames.
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


def test_far_from_its_server_it_starts_as_fast_as_tcp(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """A small file that mostly arrives in slow start. H2O's latency optimisation, which begins at a
    round trip of 50 ms, made the kernel send packets of a few bytes."""
    file = scenario(
        "far",
        size="256 kB",
        wifi="down: 15 Mbit/s, up: 5 Mbit/s, rtt: 100 ms",
        lte="down: 12 Mbit/s, up: 4 Mbit/s, rtt: 140 ms",
    )
    runs = compared(linklab, file, who="curl-wifi,mptcp,mptcp-single-path")
    took_s = {name: figures["download_s"] for name, (figures, _) in runs.items()}
    assert took_s == pytest.approx(dict.fromkeys(took_s, took_s["far-curl-wifi"]), rel=0.02)


def test_a_backup_carries_nothing_while_the_first_link_can(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    runs = compared(linklab, scenario("backup", size="20 MB"), who="mptcp-backup,curl-wifi")
    figures, run_dir = runs["backup-mptcp-backup"]
    subflows = by_link(run_dir)
    assert (subflows["wifi"]["state"], subflows["lte"]["state"]) == ("open", "backup")
    assert subflows["wifi"]["received_bytes"] > SIZE_BYTES
    assert subflows["lte"]["received_bytes"] == 0
    alone, _ = runs["backup-curl-wifi"]
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


SLOW = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 20 ms, queue: 100 kB"
GOOD_LTE = "down: 8 Mbit/s, up: 4 Mbit/s, rtt: 60 ms"


def changes(run_dir: Path) -> list[tuple[float, str, str]]:
    """Returns when LTE was opened, suspended or resumed, and the estimates of the links then."""
    return [
        (event["t_s"], *event["detail"].split(", ", 1))
        for event in lines(run_dir / "events.jsonl")
        if event["kind"] == "subflow"
    ]


def test_emptcp_in_the_kernel_opens_suspends_and_resumes_lte(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario(
        "emptcp",
        size="25 MB",
        wifi=SLOW,
        lte=GOOD_LTE,
        more="energy: galaxy-s3\n"
        "events:\n"
        "  - {at: 12 s, link: wifi, down: 12 Mbit/s}\n"
        "  - {at: 20 s, link: wifi, down: 1 Mbit/s}\n",
    )
    figures, run_dir = downloaded(linklab, file, "emptcp-kernel")
    opened, suspended, resumed = changes(run_dir)[:3]
    assert (opened[1], suspended[1], resumed[1]) == ("opened", "suspended", "resumed")
    assert 3.0 <= opened[0] < 3.1  # τ, because κ takes 8 s. 5 Mbit/s are assumed then.
    assert opened[2].endswith(" 5.00 of LTE")
    assert 12.0 < suspended[0] < 13.0
    assert 20.0 < resumed[0] < 21.5
    rested = [
        sample["sent_bytes"]
        for sample in queue(run_dir, "lte", "down")
        if suspended[0] + 1 < sample["t_s"] < resumed[0]
    ]
    assert len(rested) > 10
    assert rested[-1] - rested[0] < 100_000
    subflows = by_link(run_dir)
    assert (subflows["wifi"]["endpoint"], subflows["lte"]["state"]) == (0, "open")
    assert figures["energy"]["model"] == "galaxy-s3"
    again, _ = downloaded(linklab, file, "emptcp-kernel")
    assert again == figures


def test_emptcp_in_the_kernel_forecasts_lte_or_keeps_its_highest_rate(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """eMPTCP 3.2. LTE becomes slower, and then Wi-Fi good."""
    file = scenario(
        "forecast",
        size="12 MB",
        wifi="down: 0.9 Mbit/s, up: 1 Mbit/s, rtt: 20 ms, queue: 30 kB",
        lte="down: 4 Mbit/s, up: 4 Mbit/s, rtt: 60 ms, queue: 200 kB",
        more="energy: galaxy-s3\n"
        "events:\n"
        "  - {at: 7 s, link: lte, down: 2.5 Mbit/s}\n"
        "  - {at: 12 s, link: wifi, down: 12 Mbit/s}\n",
    )
    runs = compared(linklab, file, who="emptcp-kernel,emptcp-kernel-2016")
    for who, least_mbit, most_mbit in (
        ("emptcp-kernel", 3.6, 4.1),
        ("emptcp-kernel-2016", 2.1, 2.6),
    ):
        opened, suspended = changes(runs[f"forecast-{who}"][1])[:2]
        assert opened[2].endswith(" 5.00 of LTE")
        assert suspended[0] > 12
        known = re.fullmatch(r"expecting [\d.]+ Mbit/s of Wi-Fi, ([\d.]+) of LTE", suspended[2])
        assert known is not None
        assert least_mbit < float(known[1]) < most_mbit


def test_emptcp_in_the_kernel_leaves_lte_asleep_for_a_small_file(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    more = "energy: galaxy-s3\n"
    file = scenario("small", size="256 kB", wifi=SLOW, lte=GOOD_LTE, more=more)
    _, run_dir = downloaded(linklab, file, "emptcp-kernel")
    assert changes(run_dir) == []
    assert set(by_link(run_dir)) == {"wifi"}
    on_the_wire = json.loads((run_dir / "outcome.json").read_bytes())["received_bytes"]
    assert on_the_wire["lte"] == 0


def test_one_link_at_a_time_and_back_to_the_first(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario(
        "single",
        size="20 MB",
        wifi="down: 20 Mbit/s, up: 10 Mbit/s, rtt: 20 ms",
        lte="down: 10 Mbit/s, up: 5 Mbit/s, rtt: 60 ms",
        more="events: [{at: 2 s, link: wifi, carrier: down, for: 5 s}]\n",
    )
    figures, run_dir = downloaded(linklab, file, "mptcp-single-path")
    assert [
        (event["link"], event["detail"])
        for event in lines(run_dir / "events.jsonl")
        if event["kind"] == "subflow"
    ] == [("lte", "opened"), ("wifi", "opened")]
    states = [(one["link"], one["state"]) for one in lines(run_dir / "subflows.jsonl")]
    assert states == [("wifi", "closed"), ("lte", "closed"), ("wifi", "open")]
    carried = [one["received_bytes"] for one in lines(run_dir / "subflows.jsonl")]
    assert all(count > 2_000_000 for count in carried)
    assert figures["download_s"] < 15


def test_one_link_is_left_when_the_peer_has_confirmed_the_other(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Wi-Fi is back before LTE has delivered anything. In an earlier version Wi-Fi was closed for
    LTE, and LTE for Wi-Fi during its handshake. No subflow was left, and curl waited for ever."""
    file = scenario(
        "flap",
        size="500 kB",
        wifi="down: 1593 kbit/s, up: 398 kbit/s, rtt: 244.6 ms, queue: 59 kB",
        lte="down: 728 kbit/s, up: 1646 kbit/s, rtt: 96.8 ms, queue: 104 kB",
        more="events: [{at: 838 ms, link: wifi, carrier: down, for: 829 ms}]\n",
    )
    figures, run_dir = downloaded(linklab, file, "mptcp-single-path")
    assert figures["download_s"] < 10
    assert by_link(run_dir)["wifi"]["received_bytes"] > 400_000


def test_a_schedule_of_least_energy_never_wakes_lte_on_the_paper_s_phone(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """eMPTCP 4.6: in all its scenarios such a schedule uses Wi-Fi alone."""
    wifi = f"{SLOW}, on_off: {{rate: 10 Mbit/s, on: 5 s, off: 5 s}}"
    file = scenario("mdp", size="3 MB", wifi=wifi, lte=GOOD_LTE, more="energy: galaxy-s3\n")
    _, run_dir = downloaded(linklab, file, "mptcp-mdp")
    subflows = by_link(run_dir)
    assert subflows["wifi"]["received_bytes"] > 3_000_000
    assert "lte" not in subflows, "its handshake would wake the radio"
    assert changes(run_dir) == []
