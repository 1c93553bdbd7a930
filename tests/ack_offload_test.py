"""Tests acknowledgements that leave by another link, in the guest in virtual time."""

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Linklab, lines, queue, succeeded

SHARED_AIR = (
    "down: 54 Mbit/s, up: 54 Mbit/s, rtt: 20 ms, radio: {standard: g, cell: mixed, "
    "access_points: [{name: ap1, signal: -60 dBm}], loss: 0 %}"
)


def sent_up(run_dir: Path, link: str, until_s: float) -> int:
    """Returns the bytes that the client had sent over a link by a time."""
    counts: list[int] = [
        sample["sent_bytes"] for sample in queue(run_dir, link, "up") if sample["t_s"] <= until_s
    ]
    return max(counts)


def test_wifi_is_free_of_acknowledgements_and_carries_more(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    lte = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 40 ms"
    file = scenario("acks", size="20 MB", wifi=SHARED_AIR, lte=lte)
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,offloading-ack")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    # Equations 1 and 2 give 2.05 for this cell (emulator/linklab/models/air_test.py).
    gain = rows["offloading-ack"]["goodput_bps"] / rows["curl-wifi"]["goodput_bps"]
    assert 1.7 < gain < 2.2
    assert rows["offloading-ack"]["links"]["wifi"]["share"] > 0.999
    (run_dir,) = done.run_dir.glob("*offloading-ack*")
    (event,) = lines(run_dir / "events.jsonl")
    assert (event["link"], event["kind"], event["detail"]) == (
        "lte",
        "acknowledgements",
        "led over it",
    )
    ended_s = rows["offloading-ack"]["download_s"]
    # From then on nothing leaves over Wi-Fi: 14,000 segments, one acknowledgement per two.
    began_s = event["t_s"] + 0.5
    assert sent_up(run_dir, "wifi", ended_s) == sent_up(run_dir, "wifi", began_s) < 30_000
    assert sent_up(run_dir, "lte", ended_s) > 300_000


def test_one_acknowledgement_for_twelve_packets_leaves_wifi_more_air(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = scenario(
        "few-acks", size="10 MB", wifi=SHARED_AIR, lte="down: 1 Mbit/s, up: 1 Mbit/s, rtt: 40 ms"
    )
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,aggregating-ack")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    (run_dir,) = done.run_dir.glob("*aggregating-ack*")
    # Each has 66 bytes. TCP delays some until the next twelve while the program reads.
    acknowledgements = sent_up(run_dir, "wifi", rows["aggregating-ack"]["download_s"]) / 66
    assert 11 < 10e6 / 1448 / acknowledgements < 18
    # By equation 1 with t_ack / 12 in place of t_ack / 2 it is 1.75.
    gain = rows["aggregating-ack"]["goodput_bps"] / rows["curl-wifi"]["goodput_bps"]
    assert 1.5 < gain < 1.9


def test_where_the_other_link_goes_wifi_acknowledges_itself(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = scenario(
        "acks-gone",
        size="20 MB",
        wifi="down: 20 Mbit/s, up: 10 Mbit/s, rtt: 20 ms",
        lte="down: 1 Mbit/s, up: 1 Mbit/s, rtt: 40 ms",
        more="events: [{at: 2 s, link: lte, carrier: down, for: 3 s}]\n",
    )
    done = succeeded(linklab, "run", file, "-a", "offloading-ack")
    run_dir = done.run_dir
    assert [
        event["detail"]
        for event in lines(run_dir / "events.jsonl")
        if event["kind"] == "acknowledgements"
    ] == ["led over it", "no longer led over it", "led over it"]
    assert sent_up(run_dir, "wifi", 4.9) > sent_up(run_dir, "wifi", 2.0) + 50_000
    assert done.json["figures"]["download_s"] < 10
    received = json.loads((run_dir / "outcome.json").read_bytes())["received_bytes"]
    assert received["lte"] < 1000
