"""Tests a sender that is told about a silent Wi-Fi, in the guest in virtual time."""

from collections.abc import Callable
from pathlib import Path

from conftest import Linklab, lines, queue, succeeded

WIFI = "down: 24 Mbit/s, up: 5 Mbit/s, rtt: 58.6 ms, queue: 256 kB"
LTE = "down: 1 Mbit/s, up: 0.5 Mbit/s, rtt: 150 ms"


def arrived(run_dir: Path, since_s: float, until_s: float) -> int:
    """Returns the bytes that Wi-Fi delivered between two times."""
    counts: list[int] = [
        sample["sent_bytes"]
        for sample in queue(run_dir, "wifi", "down")
        if since_s <= sample["t_s"] <= until_s
    ]
    return max(counts) - min(counts)


def blackout(scenario: Callable[..., Path], duration_s: int) -> Path:
    event = f"{{at: 3 s, link: wifi, for: {duration_s} s, outage: true}}"
    more = f"tcp: {{congestion_control: reno}}\nevents: [{event}]\n"
    return scenario("blackout", size="20 MB", wifi=WIFI, lte=LTE, more=more)


def test_after_a_blackout_a_sender_that_was_told_tries_at_once(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    file = blackout(scenario, 2)
    done = succeeded(linklab, "compare", file, "-a", "curl-wifi,freeze")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    assert rows["freeze"]["download_s"] < rows["curl-wifi"]["download_s"]
    assert rows["freeze"]["links"]["wifi"]["share"] > 0.9999

    (run_dir,) = done.run_dir.glob("*freeze*")
    said = [one for one in lines(run_dir / "events.jsonl") if one["kind"] == "sender"]
    assert [(one["link"], one["detail"]) for one in said[:2]] == [
        ("wifi", "frozen"),
        ("wifi", "goes on"),
    ]
    assert 3 < said[0]["t_s"] < 3.2
    # 5 s and a timeout that did not double: 0.2 s over a round trip with a full queue.
    assert 5 < said[1]["t_s"] < 5.4
    (plain,) = done.run_dir.glob("*curl-wifi*")
    assert arrived(plain, 4.9, 6.1) < arrived(run_dir, 4.9, 6.1)


def test_after_a_long_blackout_it_tries_as_soon(
    linklab: Linklab, scenario: Callable[..., Path]
) -> None:
    done = succeeded(linklab, "compare", blackout(scenario, 20), "-a", "curl-wifi,freeze")
    rows = {row["algorithm"]: row for row in done.json["comparisons"][0]["rows"]}
    # Plain TCP tries again long after the link is back, and with a window of one packet.
    assert rows["curl-wifi"]["download_s"] > 40
    assert rows["freeze"]["download_s"] < 30
