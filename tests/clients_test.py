"""Tests several clients on the same links at once, in the guest and in virtual time."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROBES, SEEDS, Linklab, ScenarioFile, succeeded
from linklab.core.frames import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES

WIFI = "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, queue: 100 kB"
LTE = "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 40 ms, queue: 100 kB"


@pytest.fixture
def several(linklab: Linklab, scenario: ScenarioFile) -> Callable[..., Any]:
    """Runs several clients. Returns the run's JSON."""

    def run(clients: str, algorithm: str = "adaptive", size: str = "4 MB") -> Any:
        more = f"clients: {clients}\n"
        file = scenario("several", size=size, wifi=WIFI, lte=LTE, more=more)
        done = succeeded(linklab, "run", file, "-a", algorithm)
        return done.json

    return run


def test_equal_clients_get_about_the_same(several: Callable[..., Any]) -> None:
    done = several("3", "aria2-2")
    figures = done["figures"]
    assert [one["algorithm"] for one in figures["clients"]] == ["aria2-2"] * 3
    assert [one["client"] for one in figures["clients"]] == [1, 2, 3]
    assert figures["shares"]["all links"]["jain"] > 0.9
    together_bps = sum(one["goodput_bps"] for one in figures["clients"])
    assert together_bps < 30e6 * 1.1
    for link in ("wifi", "lte"):
        assert len(figures["shares"][link]["rates_bps"]) == 3


def test_different_clients_download_side_by_side(several: Callable[..., Any]) -> None:
    done = several("[tested, alg3, mptcp, aria2-8]")
    run_dir = Path(done["run_dir"])
    clients = done["figures"]["clients"]
    assert [one["algorithm"] for one in clients] == ["adaptive", "alg3", "mptcp", "aria2-8"]
    assert clients[0]["download_s"] == done["figures"]["download_s"]
    for number, one in enumerate(clients, 1):
        own = run_dir if number == 1 else run_dir / f"client-{number}"
        outcome = json.loads((own / "outcome.json").read_text())
        assert outcome["exit_code"] == 0
        # Alone each would need 1.1 s.
        assert 1.5 < one["download_s"] <= outcome["elapsed_ns"] / 1e9 + 0.001
        carried = sum(outcome["received_bytes"].values())
        assert 4e6 < carried < 4e6 * 1.2  # No frame of another client.
    subflows = (run_dir / "client-3" / "subflows.jsonl").read_text().splitlines()
    assert {json.loads(line)["link"] for line in subflows} == {"wifi", "lte"}


def test_runs_of_several_clients_are_equal(several: Callable[..., Any]) -> None:
    first, again = (several("[tested, curl-wifi]", "alg3", "2 MB") for _ in range(2))
    assert first["figures"] == again["figures"]


def test_a_user_s_program_runs_on_each_host(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("several", size="1 MB", wifi=WIFI, lte=LTE, more="clients: 2\n")
    said = "hostname -I 2>/dev/null; cat /proc/net/fib_trie | grep -o '10.1.0.20[0-9]' | sort -u"
    run_dir = succeeded(linklab, "exec", file, "--", "sh", "-c", said).run_dir
    assert "10.1.0.202" not in (run_dir / "client.out").read_text()
    assert "10.1.0.202" in (run_dir / "client-2" / "client.out").read_text()


def test_clients_are_compared_with_their_shares(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario(
        "several", size="2 MB", wifi=WIFI, lte=LTE, more="clients: [tested, curl-wifi]\n"
    )
    done = succeeded(linklab, "compare", file, "-a", "alg3,curl-wifi")
    for row in done.json["rows"] if "rows" in done.json else done.json["comparisons"][0]["rows"]:
        assert set(row["clients"]) == {f"client 1 {row['algorithm']}", "client 2 curl-wifi"}
        assert 0.5 <= row["jain"]["all links"] <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_each_client_has_the_round_trip_that_is_added(
    seed: int, linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Of up to eight clients, one way and the other, after the link was away for a while."""
    dice = random.Random(seed)
    added_ms = [0, *(dice.choice((0, dice.uniform(0, 300))) for _ in range(7))]
    rtt_ms, down_mbps, up_mbps = (round(dice.uniform(2, 100), 3) for _ in range(3))
    link = f"down: {down_mbps} Mbit/s, up: {up_mbps} Mbit/s, rtt: {rtt_ms} ms"
    listed = ", ".join(f"{{added_rtt: {one} ms}}" for one in added_ms)
    away = "".join(
        f"  - {{at: {at} s, link: wifi, carrier: {what}}}\n"
        for at, what in ((0.5, "down"), (0.7, "up"))
    )
    file = scenario("apart", wifi=link, lte=LTE, more=f"clients: [{listed}]\nevents:\n{away}")
    payload = dice.randrange(10, 1473)
    words = ("python3", PROBES / "one_way.py", "wlan0", "server-isp", payload, 3)
    run_dir = succeeded(linklab, "exec", file, "--", *words).run_dir
    bits = 8 * (payload + UDP_BYTES + IPV4_BYTES + ETHERNET_BYTES)
    for number, added in enumerate(added_ms, 1):
        own = run_dir if number == 1 else run_dir / f"client-{number}"
        took_us = [int(ns) / 1e3 for ns in (own / "client.out").read_text().split()]
        expected_us = [(rtt_ms + added) * 500 + bits / mbps for mbps in (up_mbps, down_mbps)]
        assert took_us == pytest.approx(expected_us, rel=0, abs=2), (number, added)
