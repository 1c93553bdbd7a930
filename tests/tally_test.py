"""Tests that every packet is counted: sent = received + dropped + lost, in the guest and in virtual time."""

import json
from pathlib import Path
from random import Random

import pytest
from conftest import PROBES, SEEDS, Linklab, queue
from linklab.queues.registry import DISCIPLINES
from linklab.scenario import load

SECONDS, DRAIN_S = 12.0, 10.0
LINKS = 8
RADIO = (
    "radio: {{standard: n, loss: 1 %, handover: {}, access_points: [{{name: p{}, signal: -50 dBm}},"
    " {{name: q{}, signal: -55 dBm}}]}}"
)
HANDOVERS = ("fast-transition", "reassociation", "full-scan", "full-scan-dhcp")
IMPAIRMENTS = (
    *("loss: 5 %", "delay: 40 ms", "delay: 30 ms, jitter: 9 ms, in_order: false"),
    *("mtu: 700 B, black_hole: true", "police: 300 kbit/s, police_burst: 5 kB"),
)
"""Without what makes two packets of one or says that one has not arrived: `duplicate`, `mtu` alone, and
`corrupt`, after which any host on the way may refuse the packet."""


def links(chosen: Random, seed: int) -> str:
    """Returns links of all kinds, with every discipline in both directions over all seeds."""
    text = ""
    for number in range(LINKS):
        down, up = (
            DISCIPLINES[(number + seed * place) % len(DISCIPLINES)].name for place in (1, 4)
        )
        rates = (
            f"down: {chosen.randint(1000, 4000)} kbit/s, up: {chosen.randint(1000, 4000)} kbit/s"
        )
        words = [rates, f"rtt: {chosen.randint(10, 300)} ms, queue_down: {down}, queue_up: {up}"]
        if number % 2:
            words.append("kind: wifi")
            if number < LINKS - 1:
                words.append(RADIO.format(chosen.choice(HANDOVERS), number, number))
        else:
            words.append(
                chosen.choice(("kind: other", "kind: lte, rrc: {}", "kind: lte, loss: 2 %"))
            )
        if number % 3 == 0:
            nat = chosen.choice(("", ", nat_udp: 300 ms"))
            words.append(f"impair_down: {{{chosen.choice(IMPAIRMENTS)}}}")
            words.append(f"impair_up: {{{chosen.choice(IMPAIRMENTS)}{nat}}}")
        text += f"  l{number}: {{{', '.join(words)}}}\n"
    return text


def events(chosen: Random) -> str:
    """Returns events of every kind. All of them end before the senders do."""
    changes = (
        *(
            "carrier: down",
            "outage: true",
            "loss: 100 %",
            "loss: 20 %",
            "fade: 10 %",
            "jitter: 5 ms",
        ),
        *("cap: 100 kbit/s", "cross: 10 Mbit/s", "down: 50 kbit/s, up: 90 kbit/s", "queue: 4 kB"),
        *("rtt: 500 ms", "carrier: down, rtt: 20 ms"),
        *(f"impair_{{}}: {{{{{one}}}}}" for one in IMPAIRMENTS),
    )
    text = ""
    for number in range(LINKS):
        roams = number % 2 and number < LINKS - 1
        for at_s in sorted(chosen.uniform(0.5, 8.0) for _ in range(10)):
            change = chosen.choice(changes).format(chosen.choice(("down", "up")))
            if roams and chosen.random() < 0.3:
                change = "handover: next"
            length = "" if "handover" in change else f" for: {chosen.uniform(0.01, 2.0):.3f} s,"
            text += f"  - {{at: {at_s:.3f} s,{length} link: l{number}, {change}}}\n"
    return text


@pytest.mark.parametrize("seed", SEEDS)
def test_every_packet_is_received_or_counted(linklab: Linklab, tmp_path: Path, seed: int) -> None:
    chosen = Random(seed)
    file = tmp_path / "tally.yaml"
    file.write_text(
        f"name: tally\npayload: {{size: 1 MB}}\nlinks:\n{links(chosen, seed)}events:\n{events(chosen)}"
    )
    settings = load(file).links
    devices = [one.device for one in settings.values()]
    words = ("python3", PROBES / "tally.py", SECONDS, DRAIN_S, seed, *devices)
    done = linklab("exec", file, "--seed", seed, "--json", "--", *words)
    assert done.code == 0, done.json["error"]
    run_dir = done.run_dir
    found = json.loads((run_dir / "tally.json").read_text())
    missing = {}
    for name, link in settings.items():
        for direction, (sent, received) in found[link.device].items():
            last = queue(run_dir, name, direction)[-1]
            assert (sent > 100, last["queue_bytes"]) == (True, 0)
            counted = received + last["dropped_packets"] + last["lost_packets"]
            if sent != counted:
                missing[name, direction] = (sent, received, sent - counted)
    assert missing == {}
