"""Tests the principles of super-aggregation, alone and together, in the guest in virtual time:
acknowledgements by the other link, a sender that is told of a silence, losses that are hidden from it."""

import json
from pathlib import Path

from conftest import Linklab, ScenarioFile, compared, lines, queue, succeeded

SHARED_AIR = (
    "down: 54 Mbit/s, up: 54 Mbit/s, rtt: {}, loss: {}, radio: {{standard: g, cell: mixed, "
    "access_points: [{{name: ap1, signal: -60 dBm}}], loss: 0 %}}"
)
WIFI = "down: 24 Mbit/s, up: 5 Mbit/s, rtt: 60 ms, queue: 256 kB"
LTE = "down: 1 Mbit/s, up: 500 kbit/s, rtt: 150 ms, queue: 128 kB"
RENO = "tcp: {congestion_control: reno}\n"
ACKNOWLEDGEMENT_BYTES = 66


def sent(run_dir: Path, link: str, way: str, since_s: float, until_s: float) -> int:
    """Returns the bytes that a direction of a link carried between two times."""
    counts: list[int] = [
        sample["sent_bytes"]
        for sample in queue(run_dir, link, way)
        if since_s <= sample["t_s"] <= until_s
    ]
    return max(counts) - min(counts)


def told(run_dir: Path, kind: str) -> list[str]:
    """Returns the details of the events of a kind."""
    return [one["detail"] for one in lines(run_dir / "events.jsonl") if one["kind"] == kind]


def fetched(run_dir: Path) -> list[str]:
    """Returns the clients' addresses of all requests for parts."""
    asked = lines(run_dir / "h2o-access.jsonl")
    return [entry["client"] for entry in asked if entry["status"] == 206]


def test_wifi_that_carries_few_or_no_acknowledgements_carries_more(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    lte = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 40 ms"
    file = scenario("acks", size="20 MB", wifi=SHARED_AIR.format("20 ms", "0 %"), lte=lte)
    runs = compared(linklab, file, who="curl-wifi,offloading-ack,aggregating-ack")
    plain, _ = runs["acks-curl-wifi"]
    free, run_dir = runs["acks-offloading-ack"]
    # Equations 1 and 2 give 2.05 for this cell (emulator/linklab/models/air_test.py).
    assert 1.7 < free["goodput_bps"] / plain["goodput_bps"] < 2.2
    assert free["links"]["wifi"]["share"] > 0.999
    assert told(run_dir, "acknowledgements") == ["led over it"]
    # From then on nothing leaves over Wi-Fi: 14,000 segments, one acknowledgement per two.
    begun_s = lines(run_dir / "events.jsonl")[0]["t_s"] + 0.5
    assert sent(run_dir, "wifi", "up", begun_s, free["download_s"]) == 0
    assert sent(run_dir, "lte", "up", 0, free["download_s"]) > 300_000
    few, run_dir = runs["acks-aggregating-ack"]
    # TCP delays some until the next twelve while the program reads.
    acknowledgements = sent(run_dir, "wifi", "up", 0, few["download_s"]) / ACKNOWLEDGEMENT_BYTES
    assert 11 < 20e6 / 1448 / acknowledgements < 18
    # By equation 1 with t_ack / 12 in place of t_ack / 2 it is 1.75.
    assert 1.5 < few["goodput_bps"] / plain["goodput_bps"] < 1.9


def test_where_the_other_link_goes_wifi_acknowledges_itself(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario(
        "acks-gone",
        size="20 MB",
        wifi="down: 20 Mbit/s, up: 10 Mbit/s, rtt: 20 ms",
        lte="down: 1 Mbit/s, up: 1 Mbit/s, rtt: 40 ms",
        more="events: [{at: 2 s, link: lte, carrier: down, for: 3 s}]\n",
    )
    done = succeeded(linklab, "run", file, "-a", "offloading-ack")
    led = ["led over it", "no longer led over it", "led over it"]
    assert told(done.run_dir, "acknowledgements") == led
    assert sent(done.run_dir, "wifi", "up", 2.0, 4.9) > 50_000
    assert done.json["figures"]["download_s"] < 10
    received = json.loads((done.run_dir / "outcome.json").read_bytes())["received_bytes"]
    assert received["lte"] < 1000


def test_after_a_blackout_a_sender_that_was_told_tries_at_once(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    wifi = "down: 24 Mbit/s, up: 5 Mbit/s, rtt: 58.6 ms, queue: 256 kB"
    short, long = (
        scenario(
            f"dark-{seconds}",
            size="20 MB",
            wifi=wifi,
            lte=LTE,
            more=f"{RENO}events: [{{at: 3 s, link: wifi, for: {seconds} s, outage: true}}]\n",
        )
        for seconds in (2, 20)
    )
    runs = compared(linklab, short, long, who="curl-wifi,freeze")
    (plain, plain_dir), (freeze, run_dir) = (
        runs[f"dark-2-{who}"] for who in ("curl-wifi", "freeze")
    )
    assert freeze["download_s"] < plain["download_s"]
    assert freeze["links"]["wifi"]["share"] > 0.9999
    frozen, on = [one for one in lines(run_dir / "events.jsonl") if one["kind"] == "sender"][:2]
    assert (frozen["link"], frozen["detail"], on["detail"]) == ("wifi", "frozen", "goes on")
    assert 3 < frozen["t_s"] < 3.2
    # 5 s and a timeout that did not double: 0.2 s over a round trip with a full queue.
    assert 5 < on["t_s"] < 5.4
    carried, own = (sent(one, "wifi", "down", 4.9, 6.1) for one in (plain_dir, run_dir))
    assert carried < own
    # Plain TCP tries again long after the link is back, and with a window of one packet.
    assert runs["dark-20-curl-wifi"][0]["download_s"] > 40
    assert runs["dark-20-freeze"][0]["download_s"] < 30


def test_random_losses_cost_wifi_nothing_and_what_a_full_queue_drops_is_the_senders(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Also if LTE could deliver what is dropped."""
    lossy = scenario("lossy", size="20 MB", wifi=f"{WIFI}, loss: 0.5 %", lte=LTE, more=RENO)
    short = scenario("dropping", size="20 MB", wifi=WIFI.replace("256", "64"), more=RENO)
    runs = compared(linklab, lossy, short, who="curl-wifi,loss-fetching")
    hidden, run_dir = runs["lossy-loss-fetching"]
    # By equations 6 and 7 TCP reaches 3.2 Mbit/s here.
    assert hidden["goodput_bps"] > 4 * runs["lossy-curl-wifi"][0]["goodput_bps"]
    assert hidden["goodput_bps"] > 12e6
    last = queue(run_dir, "wifi", "down")[-1]
    lost, parts = last["lost_packets"], len(fetched(run_dir))
    received = json.loads((run_dir / "outcome.json").read_bytes())["received_bytes"]
    # Of 14,000 packets 5 in 1000 are lost. What the sender repeats comes over Wi-Fi.
    assert 45 < lost < 100
    assert last["dropped_packets"] == 0
    assert 0.8 * lost < parts <= lost
    # A part is an answer's head, some TCP headers and acknowledgements, and 1448 bytes.
    assert 1448 * parts < received["lte"] < 2000 * lost
    assert hidden["links"]["lte"]["share"] < 0.01
    own, run_dir = runs["dropping-loss-fetching"]
    last = queue(run_dir, "wifi", "down")[-1]
    assert last["dropped_packets"] > 50
    assert last["lost_packets"] == 0
    assert len(fetched(run_dir)) < 0.1 * last["dropped_packets"]
    gain = own["goodput_bps"] / runs["dropping-curl-wifi"][0]["goodput_bps"]
    assert 0.9 < gain < 1.1


def test_what_was_hidden_comes_over_wifi_where_the_other_link_is_gone(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario(
        "gone",
        size="10 MB",
        wifi=f"{WIFI}, loss: 0.5 %",
        lte=LTE,
        more=f"{RENO}events: [{{at: 2 s, link: lte, carrier: down}}]\n",
    )
    runs = compared(linklab, file, who="curl-wifi,loss-fetching")
    own, run_dir = runs["gone-loss-fetching"]
    assert own["download_s"] < runs["gone-curl-wifi"][0]["download_s"]
    asked = fetched(run_dir)
    assert asked[-1] == "10.1.0.2"
    assert len({*asked}) == 2


def test_all_principles_together_carry_more_than_the_sum_of_both_links(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    blackouts = "events: [{at: 2 s, link: wifi, for: 2 s, outage: true}]\n"
    wifi = SHARED_AIR.format("60 ms", "0.5 %")
    file = scenario("all", size="20 MB", wifi=wifi, lte=LTE, more=blackouts)
    who = "curl-wifi,offloading-ack,freeze,loss-fetching,super-aggregation"
    runs = compared(linklab, file, who=who)
    rates = {name.removeprefix("all-"): own["goodput_bps"] for name, (own, _) in runs.items()}
    assert rates["super-aggregation"] > 1.5 * (rates["curl-wifi"] + 1e6)  # LTE's is less.
    assert max(rates, key=rates.__getitem__) == "super-aggregation"
    figures, run_dir = runs["all-super-aggregation"]
    # Of 14,000 packets LTE acknowledges one in twelve, Wi-Fi those around a silence.
    acknowledgements = {
        link: queue(run_dir, link, "up")[-1]["sent_bytes"] / ACKNOWLEDGEMENT_BYTES
        for link in ("wifi", "lte")
    }
    assert 14_000 / 12 < acknowledgements["lte"] < 14_000 / 3
    assert acknowledgements["wifi"] < acknowledgements["lte"] / 2
    assert len(fetched(run_dir)) > 20
    again = succeeded(linklab, "run", file, "-a", "super-aggregation")
    assert again.json["figures"] == figures


def test_a_silent_sender_is_told_over_the_other_link_and_goes_on_soon(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Linux' sender alone doubles its timeout with each try. It then sleeps for 6 s more."""
    silence = "events: [{at: 2 s, link: wifi, for: 6 s, outage: true}]\n"
    file = scenario("silent", size="10 MB", wifi=WIFI, lte=LTE, more=silence)
    runs = compared(linklab, file, who="freeze,loss-fetching,super-aggregation")
    took_s = {name.removeprefix("silent-"): own["download_s"] for name, (own, _) in runs.items()}
    assert took_s["super-aggregation"] < took_s["loss-fetching"] - 5
    assert took_s["super-aggregation"] < 1.1 * took_s["freeze"]


def test_where_the_other_link_is_silent_wifi_acknowledges_itself(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    gone = "events: [{at: 2 s, link: lte, outage: true}]\n"
    file = scenario("alone-all", size="10 MB", wifi=WIFI, lte=LTE, more=gone)
    done = succeeded(linklab, "run", file, "-a", "super-aggregation")
    assert queue(done.run_dir, "wifi", "up")[-1]["sent_bytes"] > 20_000
    assert done.json["figures"]["download_s"] < 120
