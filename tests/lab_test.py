"""Tests the lab as a whole, in the guest in virtual time: does it match the scenario?"""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROBES, Linklab, compared, lines, queue, succeeded
from linklab.core.frames import FRAME_BYTES, goodput_ratio

ScenarioFile = Callable[..., Path]


def test_a_download_uses_both_links_and_comes_close_to_the_oracle(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("both", size="30 MB")
    done = succeeded(linklab, "run", file, "-a", "alg3")
    assert "place: guest, clock: virtual" in done.err
    figures = done.json["figures"]
    assert 0.85 < figures["efficiency"] <= 1.0
    assert figures["links"]["wifi"]["bytes"] + figures["links"]["lte"]["bytes"] == 30_000_000
    assert 0.25 < figures["links"]["lte"]["share"] < 0.45
    run_dir = done.run_dir
    requests = [line for line in lines(run_dir / "client.jsonl") if line["event"] == "request"]
    covered = sorted((line["offset"], line["length"]) for line in requests)
    assert sum(length for _, length in covered) == 30_000_000
    assert {line["link"] for line in requests} == {"wifi", "lte"}
    served = [line for line in lines(run_dir / "h2o-access.jsonl") if line["status"] == 206]
    assert len(served) == len(requests)
    assert {line["client"] for line in served} == {"10.1.0.2", "10.2.0.2"}
    assert {line["protocol"] for line in served} == {"HTTP/2"}


def test_a_saturated_link_carries_what_its_rate_allows(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    runs = compared(linklab, scenario("saturated", size="25 MB"), who="single-wifi,single-lte")
    for link, rate_bps in (("wifi", 80e6), ("lte", 50e6)):
        samples = [
            (line["t_ns"] / 1e9, line["received_bytes"])
            for line in lines(runs[f"saturated-single-{link}"][1] / "client.jsonl")
            if line["event"] == "sample" and line["link"] == link
        ]
        t0, b0 = next(sample for sample in samples if sample[0] > 1.0)
        t1, b1 = samples[-2]
        assert (b1 - b0) * 8 / (t1 - t0) == pytest.approx(rate_bps * goodput_ratio(), rel=0.01)


def test_the_round_trip_time_is_the_scenarios(linklab: Linklab, scenario: ScenarioFile) -> None:
    probe = f"python3 '{PROBES}/rtt.py'"
    script = f"{probe} wlan0; {probe} rmnet0"
    done = linklab("exec", scenario("rtt"), "--", "sh", "-c", script)
    assert done.code == 0, done.err
    times = [float(line) for line in done.out.splitlines()]
    expected = [0.010] * 10 + [0.030] * 10
    assert times == pytest.approx(expected, rel=0, abs=0.0002)


def test_a_queue_holds_its_bytes_and_drops_the_rest(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("burst", wifi="down: 8 Mbit/s, up: 8 Mbit/s, rtt: 10 ms, queue: 100 kB")
    done = succeeded(linklab, "exec", file, "--", "python3", PROBES / "udp.py", "wlan0", 300, 0)
    last = queue(done.run_dir, "wifi", "up")[-1]
    assert last["dropped_packets"] + last["sent_bytes"] // FRAME_BYTES == 300
    at_once = FRAME_BYTES
    assert 100_000 - FRAME_BYTES < last["sent_bytes"] <= 100_000 + at_once


def test_a_link_without_carrier_passes_nothing(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario(
        "carrier",
        more="events:\n"
        "  - {at: 1 s, link: wifi, carrier: down}\n  - {at: 2 s, link: wifi, carrier: up}\n",
    )
    run_dir = succeeded(
        linklab, "exec", file, "--", "python3", PROBES / "udp.py", "wlan0", 300, 0.01
    ).run_dir
    states = [(line["t_s"], line["up"]) for line in lines(run_dir / "links.jsonl")]
    assert states[-2:] == [(1.0, False), (2.0, True)]
    assert all(line["late_s"] < 1e-4 for line in lines(run_dir / "links.jsonl"))
    sent = {
        round(sample["t_s"], 1): sample["sent_bytes"] for sample in queue(run_dir, "wifi", "up")
    }
    assert sent[1.0] == pytest.approx(100 * FRAME_BYTES, abs=2 * FRAME_BYTES)
    assert sent[1.5] == sent[2.0] == pytest.approx(sent[1.0], abs=FRAME_BYTES)
    assert sent[2.5] - sent[2.0] == pytest.approx(50 * FRAME_BYTES, abs=2 * FRAME_BYTES)


def test_a_very_slow_link_passes_single_frames_and_owes_nothing_afterwards(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """HTB would stay down for another second, because its debt is in time and not in bytes."""
    file = scenario(
        "slow",
        wifi="down: 40 Mbit/s, up: 40 Mbit/s, rtt: 10 ms, queue: 4 MB",
        more="events:\n"
        "  - {at: 1 s, link: wifi, up: 10 kbit/s}\n  - {at: 5 s, link: wifi, up: 40 Mbit/s}\n",
    )
    done = succeeded(
        linklab, "exec", file, "--", "python3", PROBES / "udp.py", "wlan0", 1200, 0.005
    )
    sent = {
        round(sample["t_s"], 1): sample["sent_bytes"]
        for sample in queue(done.run_dir, "wifi", "up")
    }
    assert sent[4.5] - sent[1.5] == 2 * FRAME_BYTES, "one frame in 1.2 s"
    sending = 200 * FRAME_BYTES
    waiting = 4.5 * sending - 3 * FRAME_BYTES
    assert waiting < 40e6 / 8 * 0.5
    assert sent[5.5] - sent[4.5] == pytest.approx(waiting, rel=0.01)


def test_loss_and_jitter_come_from_the_seed_alone(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario(
        "lossy",
        size="8 MB",
        wifi="down: 80 Mbit/s, up: 20 Mbit/s, rtt: 15 ms, jitter: 3 ms, loss: 1 %",
    )
    first, again, other = (
        linklab("run", file, "-a", "alg3", "--seed", seed, "--json") for seed in (1, 1, 2)
    )
    assert first.code == again.code == other.code == 0, first.err + again.err + other.err
    one, two = (done.run_dir for done in (first, again))
    assert first.json["figures"] == again.json["figures"]
    assert (one / "client.jsonl").read_bytes() == (two / "client.jsonl").read_bytes()
    assert (one / "queues.jsonl").read_bytes() == (two / "queues.jsonl").read_bytes()
    assert lines(one / "queues.jsonl")[-4]["lost_packets"] > 0
    assert other.json["figures"]["download_s"] != first.json["figures"]["download_s"]


def test_links_change_until_a_client_starts_that_starts_later(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    wifi = "down: 8 Mbit/s, up: 8 Mbit/s, rtt: 10 ms"
    events = "events: [{at: 1 s, link: wifi, down: 80 Mbit/s}]"
    file = scenario("later", size="10 MB", wifi=wifi, more=events)
    done = succeeded(linklab, "run", file, "-a", "single-wifi", "--shift", 3)
    assert done.json["figures"]["download_s"] < 2
    run_dir = done.run_dir
    (change,) = (line for line in lines(run_dir / "links.jsonl") if line["t_s"] == 1)
    assert change["late_s"] < 0.001
    assert [round(one["t_s"], 1) for one in queue(run_dir, "wifi", "down")[:2]] == [0.5, 1.0]


def test_peers_take_the_clients_place(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("peers", size="20 MB")
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,mptcp,aria2-2")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    assert rows["curl-wifi"]["links"]["lte"]["share"] < 0.001
    for name in ("mptcp", "aria2-2"):
        assert rows[name]["links"]["lte"]["share"] > 0.1, name
    assert rows["mptcp"]["download_s"] < rows["curl-wifi"]["download_s"]


def test_the_guest_runs_by_the_real_clock_too(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("real", size="10 MB")
    done = succeeded(linklab, "run", file, "-a", "alg3", "--clock", "real")
    assert "clock: real" in done.err
    looked = done.json["figures"]["processes"]
    for who in ("client", "server"):
        figures = looked[who]["10 Hz"]
        assert 0 < figures["cpu_s"] <= done.json["wall_s"], who
        assert 1e6 < figures["memory_bytes"] < 200e6, who
    assert done.json["figures"]["efficiency"] <= 1.0
    assert done.json["wall_s"] > done.json["figures"]["download_s"]
