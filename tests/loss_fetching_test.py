"""Tests hiding losses of Wi-Fi from its sender and fetching the data over LTE, alone and with the
other principles of super-aggregation, in the guest in virtual time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Linklab, lines, queue, succeeded

WIFI = "down: 24 Mbit/s, up: 5 Mbit/s, rtt: 60 ms, queue: 256 kB"
LTE = "down: 1 Mbit/s, up: 500 kbit/s, rtt: 150 ms, queue: 128 kB"
RENO = "tcp: {congestion_control: reno}\n"


def outcome(run_dir: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(Path(run_dir, "outcome.json").read_bytes())
    return read


def wifi_packets(run_dir: str) -> tuple[int, int]:
    """Returns how many of Wi-Fi's downlink packets its full queue dropped, and how many were lost
    at random."""
    last = queue(Path(run_dir), "wifi", "down")[-1]
    return last["dropped_packets"], last["lost_packets"]


def fetched(run_dir: str) -> int:
    """Returns the number of parts that the client has requested."""
    return sum(entry["status"] == 206 for entry in lines(Path(run_dir, "h2o-access.jsonl")))


def test_random_losses_cost_wifi_nothing_and_lte_their_bytes(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = scenario("lossy", size="20 MB", wifi=f"{WIFI}, loss: 0.5 %", lte=LTE, more=RENO)
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,loss-fetching")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    hidden = rows["loss-fetching"]
    # By equations 6 and 7 TCP reaches 3.2 Mbit/s here.
    assert hidden["goodput_bps"] / rows["curl-wifi"]["goodput_bps"] > 4
    assert hidden["goodput_bps"] > 12e6
    (run_dir,) = map(str, done.run_dir.glob("*loss-fetching*"))
    dropped, lost = wifi_packets(run_dir)
    ended = outcome(run_dir)
    # Of 14,000 packets 5 in 1000 are lost. What the sender repeats comes over Wi-Fi.
    assert 45 < lost < 100
    assert dropped == 0
    assert 0.8 * lost < fetched(run_dir) <= lost
    # A part is an answer's head, some TCP headers and acknowledgements, and 1448 bytes.
    assert 1448 * fetched(run_dir) < ended["received_bytes"]["lte"] < 2000 * lost
    assert hidden["links"]["lte"]["share"] < 0.01


def test_what_a_full_queue_drops_is_the_senders(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    """Also if LTE could deliver it."""
    short = "down: 24 Mbit/s, up: 5 Mbit/s, rtt: 60 ms, queue: 64 kB"
    file = scenario("dropping", size="20 MB", wifi=short, more=RENO)
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,loss-fetching")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    (run_dir,) = map(str, done.run_dir.glob("*loss-fetching*"))
    dropped, lost = wifi_packets(run_dir)
    assert dropped > 50
    assert lost == 0
    assert fetched(run_dir) < 0.1 * dropped
    gain = rows["loss-fetching"]["goodput_bps"] / rows["curl-wifi"]["goodput_bps"]
    assert 0.9 < gain < 1.1


def test_while_the_other_link_is_away_losses_are_the_senders(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = scenario(
        "alone",
        size="10 MB",
        wifi=f"{WIFI}, loss: 0.5 %",
        lte=LTE,
        more=f"{RENO}events: [{{at: 2 s, link: lte, carrier: down, for: 4 s}}]\n",
    )
    done = succeeded(linklab, "run", file, "-a", "loss-fetching")
    run_dir = done.json["run_dir"]
    # What had been hidden by then arrived once the link was back.
    samples = queue(Path(run_dir), "lte", "down")
    at_s = {round(sample["t_s"], 1): sample for sample in samples}
    assert (
        at_s[2.5]["sent_bytes"]
        == at_s[5.5]["sent_bytes"]
        < outcome(run_dir)["received_bytes"]["lte"]
    )


def test_what_was_hidden_comes_over_wifi_where_the_other_link_is_gone(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = scenario(
        "gone",
        size="10 MB",
        wifi=f"{WIFI}, loss: 0.5 %",
        lte=LTE,
        more=f"{RENO}events: [{{at: 2 s, link: lte, carrier: down}}]\n",
    )
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,loss-fetching")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    assert rows["loss-fetching"]["download_s"] < rows["curl-wifi"]["download_s"]
    (run_dir,) = map(str, done.run_dir.glob("*loss-fetching*"))
    asked = [e["client"] for e in lines(Path(run_dir, "h2o-access.jsonl")) if e["status"] == 206]
    assert asked[-1] == "10.1.0.2"
    assert len({*asked}) == 2


BLACKOUTS = "events: [{at: 2 s, link: wifi, for: 2 s, outage: true}]\n"
SHARED_AIR = (
    "down: 54 Mbit/s, up: 54 Mbit/s, rtt: 60 ms, loss: 0.5 %, radio: {standard: g, cell: mixed, "
    "access_points: [{name: ap1, signal: -60 dBm}], loss: 0 %}"
)


def test_all_principles_together_carry_more_than_the_sum_of_both_links(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = scenario("all", size="20 MB", wifi=SHARED_AIR, lte=LTE, more=BLACKOUTS)
    who = "curl-wifi,offloading-ack,freeze,loss-fetching,super-aggregation"
    done = succeeded(linklab, "compare", file, "-a", who)
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    rates = {name: row["goodput_bps"] for name, row in rows.items()}
    assert rates["super-aggregation"] > 1.5 * (rates["curl-wifi"] + 1e6)  # LTE's is less.
    assert max(rates, key=rates.__getitem__) == "super-aggregation"
    (run_dir,) = map(str, done.run_dir.glob("*super-aggregation*"))
    # Of 14,000 packets LTE acknowledges one in twelve, Wi-Fi those around a silence.
    acknowledgements = {
        link: queue(Path(run_dir), link, "up")[-1]["sent_bytes"] / 66 for link in ("wifi", "lte")
    }
    assert 14_000 / 12 < acknowledgements["lte"] < 14_000 / 3
    assert acknowledgements["wifi"] < acknowledgements["lte"] / 2
    assert fetched(run_dir) > 20
    again = linklab("run", file, "-a", "super-aggregation", "--json")
    assert outcome(again.json["run_dir"])["elapsed_ns"] == outcome(run_dir)["elapsed_ns"]


def test_a_silent_sender_is_told_over_the_other_link_and_goes_on_soon(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    """Linux' sender alone doubles its timeout with each try. It then sleeps for 6 s more."""
    silence = "events: [{at: 2 s, link: wifi, for: 6 s, outage: true}]\n"
    file = scenario("silent", size="10 MB", wifi=WIFI, lte=LTE, more=silence)
    done = succeeded(linklab, "compare", file, "-a", "freeze,loss-fetching,super-aggregation")
    rows = {row["algorithm"]: row["download_s"] for row in done.json["comparisons"][0]["rows"]}
    assert rows["super-aggregation"] < rows["loss-fetching"] - 5
    assert rows["super-aggregation"] < 1.1 * rows["freeze"]


@pytest.mark.parametrize("fault", ["carrier: down", "outage: true"])
def test_without_the_other_link_wifi_acknowledges_itself(
    linklab: Linklab, scenario: Callable[..., Path], fault: str
) -> None:
    gone = f"events: [{{at: 2 s, link: lte, {fault}}}]\n"
    file = scenario("alone-all", size="10 MB", wifi=WIFI, lte=LTE, more=gone)
    done = succeeded(linklab, "run", file, "-a", "super-aggregation")
    run_dir = done.run_dir
    assert queue(run_dir, "wifi", "up")[-1]["sent_bytes"] > 20_000
    assert done.json["figures"]["download_s"] < 120
