"""Tests traffic of another host on the client's links, in the guest and in virtual time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPEATS, Called, Linklab, ScenarioFile, lines, queue, succeeded
from linklab.core.frames import (
    ETHERNET_BYTES,
    IPV6_BYTES,
    UDP_BYTES,
    goodput_ratio,
)

WIFI = "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, queue: 100 kB"
LTE = "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 40 ms, queue: 100 kB"


@pytest.fixture
def beside(linklab: Linklab, scenario: ScenarioFile) -> Callable[..., Path]:
    """Runs a download beside traffic. Returns its run directory."""

    def run(
        *flows: str,
        algorithm: str = "single-wifi",
        size: str = "10 MB",
        wifi: str = WIFI,
        lte: str = LTE,
        more: str = "",
        seed: int = 1,
    ) -> Path:
        traffic = "".join(f"  - {{{flow}}}\n" for flow in flows)
        file = scenario("shared", size=size, wifi=wifi, lte=lte, more=f"traffic:\n{traffic}{more}")
        done = succeeded(linklab, "run", file, "-a", algorithm, "--seed", seed)
        return done.run_dir

    return run


def idle(linklab: Linklab, file: Path, seconds: float) -> Path:
    """Runs a command that sleeps. Returns its run directory."""
    done = succeeded(linklab, "exec", file, "--", "sleep", seconds)
    return done.run_dir


def flows_of(run_dir: Path) -> list[dict[str, Any]]:
    return lines(run_dir / "traffic.jsonl")


def rate_bps(flow: dict[str, Any]) -> float:
    return float(flow["received_bytes"] * 8 / (flow["to_s"] - flow["from_s"]))


def test_bulk_traffic_fills_a_link_that_nobody_else_uses(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    more = (
        "traffic:\n  - {link: wifi, bulk: {connections: 2}}\n"
        "  - {link: lte, direction: up, bulk: {congestion_control: bbr}, from: 2 s, to: 8 s}\n"
    )
    run_dir = idle(linklab, scenario("alone", wifi=WIFI, lte=LTE, more=more), 10)
    down, up = flows_of(run_dir)
    assert (down["kind"], down["from_s"]) == ("bulk", 0.0)
    assert down["to_s"] == pytest.approx(10, abs=0.1)
    assert (up["link"], up["direction"], up["from_s"], up["to_s"]) == ("lte", "up", 2.0, 8.0)
    assert rate_bps(down) == pytest.approx(20e6 * goodput_ratio(), rel=0.05)
    assert rate_bps(up) == pytest.approx(5e6 * goodput_ratio(), rel=0.1)


def test_traffic_waits_in_the_queues_of_the_client_s_packets(beside: Callable[..., Path]) -> None:
    """Four connections beside one leave it about a fifth of the link."""
    run_dir = beside("link: wifi, bulk: {connections: 4}")
    (flow,) = flows_of(run_dir)
    seconds = json.loads((run_dir / "client.json").read_text())["download_ns"] / 1e9
    client_bps = 10e6 * 8 / seconds
    together = client_bps + rate_bps(flow)
    assert together == pytest.approx(20e6 * goodput_ratio(), rel=0.06)
    assert 0.1 < client_bps / together < 0.35
    assert queue(run_dir, "wifi", "down")[-1]["dropped_packets"] > 100
    counted = json.loads((run_dir / "outcome.json").read_text())["received_bytes"]
    assert counted["wifi"] < 1.06 * 10e6  # No frame of the other host.
    assert counted["lte"] == 0


def test_a_call_has_the_delay_of_its_way_and_of_the_queue(beside: Callable[..., Path]) -> None:
    """A packet needs half a round trip. Beside a download it also waits in the queue."""
    call = "call: {rate: 320 kbit/s, packet: 160 B}"
    run_dir = beside(
        f"link: wifi, {call}", f"link: wifi, direction: up, {call}", f"link: lte, {call}"
    )
    full, up, free = flows_of(run_dir)
    assert free["delay_p50_s"] == pytest.approx(0.020, abs=0.0005)
    assert up["delay_p50_s"] == pytest.approx(0.010, abs=0.005)
    # 100 kB at 20 Mbit/s are 40 ms.
    assert 0.020 < full["delay_p50_s"] <= full["delay_p99_s"] < 0.052
    assert (up["lost_packets"], free["lost_packets"]) == (0, 0)
    for flow in (full, up, free):
        assert flow["sent_packets"] == pytest.approx(250 * flow["to_s"], abs=10)
        share = 1 - flow["lost_packets"] / flow["sent_packets"]
        assert rate_bps(flow) == pytest.approx(320e3 * share, rel=0.02)


def test_pages_pause_and_take_their_time(linklab: Linklab, scenario: ScenarioFile) -> None:
    more = (
        "traffic:\n  - {link: wifi, web: {page: 300 kB, pause: 1 s}}\n"
        "  - {link: lte, direction: up, web: {page: 50 kB, pause: 1 s, connections: 1}}\n"
    )
    run_dir = idle(linklab, scenario("web", wifi=WIFI, lte=LTE, more=more), 30)
    for flow in flows_of(run_dir):
        assert 10 < flow["pages"] < 40
        assert 0.05 < flow["page_p50_s"] < flow["page_p95_s"] <= flow["page_p99_s"] < 3
        assert 0 < rate_bps(flow) < 5e6


def test_runs_are_equal_and_another_seed_is_not(beside: Callable[..., Path]) -> None:
    flows = (
        "link: wifi, bulk: {connections: 2}",
        "link: wifi, direction: up, call: {rate: 1 Mbit/s}",
        "link: lte, web: {page: 100 kB, pause: 200 ms}",
    )

    def written(seed: int) -> list[str]:
        run_dir = beside(*flows, algorithm="adaptive", size="2 MB", seed=seed)
        names = ("traffic.jsonl", "outcome.json", "queues.jsonl", "sojourns.jsonl", "client.json")
        texts = [(run_dir / name).read_text() for name in names]
        return [text.partition('"started_at_unix_ns"')[0] for text in texts]

    first = written(1)
    assert all(written(1) == first for _ in range(REPEATS - 1))
    assert written(2)[0] != first[0]


def test_figures_are_exact(linklab: Linklab, scenario: ScenarioFile) -> None:
    more = (
        "traffic:\n  - {link: wifi, bulk: {connections: 4}, to: 5 s}\n"
        "  - {link: wifi, call: {rate: 1 Mbit/s}, to: 5 s}\n"
    )
    run_dir = idle(linklab, scenario("exact", wifi=WIFI, lte=LTE, more=more), 6)
    bulk, call = flows_of(run_dir)
    assert bulk["received_bytes"] == BULK_BYTES
    delays_s = [call[f"delay_p{n}_s"] for n in (50, 95, 99)]
    assert (call["sent_packets"], call["lost_packets"], delays_s) == CALL


BULK_BYTES = 11_256_936
CALL = (520, 7, [0.045097, 0.049433, 0.050014])


def test_a_link_without_its_carrier_is_gone_for_all(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    more = (
        "events:\n  - {link: wifi, at: 3 s, for: 4 s, carrier: down}\n"
        "traffic:\n  - {link: wifi, bulk: {}, to: 3 s}\n"
        "  - {link: wifi, bulk: {}, from: 3 s, to: 7 s}\n"
        "  - {link: wifi, bulk: {}, from: 7.5 s}\n"
        "  - {link: wifi, direction: up, call: {rate: 320 kbit/s, packet: 400 B}}\n"
    )
    run_dir = idle(linklab, scenario("gone", wifi=WIFI, lte=LTE, more=more), 10)
    before, without, after, call = flows_of(run_dir)
    assert without["received_bytes"] == 0
    assert min(rate_bps(before), rate_bps(after)) > 0.7 * 20e6 * goodput_ratio()
    assert call["lost_packets"] == pytest.approx(4 * 100, abs=5)


def test_traffic_passes_a_nat_and_roams_with_the_client(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    wifi = (
        "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, queue: 100 kB, impair_up: {nat_udp: 30 s}, "
        "radio: {standard: ac, access_points: [{name: one}, {name: two}]}"
    )
    more = (
        "events:\n  - {link: wifi, at: 4 s, handover: two}\n"
        "traffic:\n  - {link: wifi, bulk: {}}\n"
        "  - {link: wifi, call: {rate: 320 kbit/s, packet: 400 B}}\n"
    )
    run_dir = idle(linklab, scenario("nat", wifi=wifi, lte=LTE, more=more), 8)
    bulk, call = flows_of(run_dir)
    assert rate_bps(bulk) > 5e6
    assert call["received_bytes"] > 0.8 * 8 * 40e3


def test_traffic_flows_over_links_of_ipv6(linklab: Linklab, scenario: ScenarioFile) -> None:
    """A call's frames have 20 bytes more than over IPv4."""
    more = (
        "network: {ip: both}\ntraffic:\n  - {link: wifi, bulk: {}}\n"
        "  - {link: lte, direction: up, call: {rate: 800 kbit/s, packet: 1000 B}, to: 3 s}\n"
        "  - {link: lte, web: {page: 100 kB, pause: 1 s}, from: 3 s}\n"
    )
    file = scenario("six", wifi=f"{WIFI}, ip: 4", lte=f"{LTE}, ip: 6", more=more)
    run_dir = idle(linklab, file, 6)
    bulk, call, web = flows_of(run_dir)
    assert rate_bps(bulk) > 0.8 * 20e6
    assert (call["sent_packets"], call["lost_packets"]) == (300, 0)
    at_3_s = next(one for one in queue(run_dir, "lte", "up") if one["t_s"] >= 3)
    assert at_3_s["sent_bytes"] == 300 * (1000 + UDP_BYTES + IPV6_BYTES + ETHERNET_BYTES)
    assert web["pages"] > 0


def test_a_flow_that_cannot_start_is_said(linklab: Linklab, scenario: ScenarioFile) -> None:
    more = "traffic:\n  - {link: wifi, bulk: {}}\n  - {link: lte, bulk: {}}\n"
    file = scenario("taken", wifi=WIFI, lte=LTE, more=more)
    server = 'python3 -c \'import socket,time; a=socket.create_server(("", 443)); b=socket.create_server(("", 5202)); time.sleep(99)\''
    done: Called = linklab("exec", file, "--server", server, "--", "true")
    assert done.code != 0
    assert "traffic[1]: port 5202 of 10.0.0.1: Address already in use" in done.err
