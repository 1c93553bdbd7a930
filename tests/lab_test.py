"""Tests the lab as a whole, in the guest in virtual time: does it match the scenario?"""

from conftest import PROBES, Linklab, ScenarioFile, lines, queue, succeeded
from linklab.core.frames import FRAME_BYTES


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


def test_a_queue_holds_its_bytes_and_drops_the_rest(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("burst", wifi="down: 8 Mbit/s, up: 8 Mbit/s, rtt: 10 ms, queue: 100 kB")
    done = succeeded(linklab, "exec", file, "--", "python3", PROBES / "udp.py", "wlan0", 300, 0)
    last = queue(done.run_dir, "wifi", "up")[-1]
    assert last["dropped_packets"] + last["sent_bytes"] // FRAME_BYTES == 300
    at_once = FRAME_BYTES
    assert 100_000 - FRAME_BYTES < last["sent_bytes"] <= 100_000 + at_once


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
