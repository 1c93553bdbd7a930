"""Tests queue disciplines below a link's rate, in the guest and in virtual time."""

import json
import math
import re
import shlex
from pathlib import Path
from random import Random
from typing import Any

import dpkt
import pytest
from conftest import (
    PROBES,
    SEEDS,
    Called,
    Linklab,
    ScenarioFile,
    is_in_part,
    lines,
    part_of,
    program,
    succeeded,
)
from ecn_counters import counted
from linklab.core import sojourns
from linklab.core.frames import FRAME_BYTES
from linklab.core.records import QueueRecord, SojournRecord
from linklab.queues.pie import Pie
from linklab.queues.registry import DISCIPLINES
from linklab.runs import queue_figures
from linklab.runs.queue_figures import QueueFigures
from msgspec import convert

SECONDS = 8
FLOWS = PROBES / "flows.py"
SERVER = f"python3 {FLOWS} serve {{port}}"
WAITS_MS = {
    "drop-tail": (50, 130),
    "drop-head": (50, 130),
    "codel": (1, 8),
    "fq_codel": (1, 8),
    "cake": (0.3, 8),
    "pie": (5, 20),
    "fq_pie": (5, 20),
    "red": (2, 30),
    "dualpi2": (2, 20),
}
"""The limits of the median wait of four cubic connections at 20 Mbit/s and 20 ms. Queues that are
counted in bytes have 300 kB: 120 ms."""


def link(queue: str) -> str:
    return f"down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, queue_down: {queue}"


def fetched(
    linklab: Linklab, file: Path, controls: list[str], seed: int = 1, seconds: int = SECONDS
) -> Called:
    """Fetches by one connection for each congestion control."""
    words = ("python3", FLOWS, "fetch", "rmnet0", seconds, *controls)
    return succeeded(linklab, "exec", file, "--seed", seed, "--server", SERVER, "--", *words)


def figures(run_dir: Path) -> QueueFigures:
    queues = convert(lines(run_dir / "queues.jsonl"), list[QueueRecord])
    waits = convert(lines(run_dir / "sojourns.jsonl"), list[SojournRecord])
    return queue_figures.of_records(queues, waits)["lte"]["down"]


@pytest.mark.parametrize("name", part_of([one.name for one in DISCIPLINES], 2))
def test_a_discipline_keeps_its_promise(
    linklab: Linklab, scenario: ScenarioFile, name: str
) -> None:
    size = ", size: 300 kB" if name.startswith("drop") or name == "red" else ""
    file = scenario("kept", lte=link(f"{{discipline: {name}{size}}}"))
    run_dir = Path(fetched(linklab, file, ["cubic"] * 4).json["run_dir"])
    found = figures(run_dir)
    least_ms, most_ms = WAITS_MS[name]
    assert found.sojourn is not None
    assert least_ms <= found.sojourn.p50_s * 1e3 <= most_ms
    assert found.sojourn.p50_s <= found.sojourn.p95_s <= found.sojourn.p99_s
    assert found.dropped_packets == found.early_dropped_packets + found.full_dropped_packets > 0
    assert (found.early_dropped_packets == 0) == name.startswith("drop")
    assert found.marked_packets == 0
    # Of frames of 1514 bytes 1448 are data.
    assert sum(json.loads((run_dir / "client.out").read_text())) * 8 > 0.9 * 20e6 * SECONDS / 2


@pytest.mark.parametrize(
    ("queue", "tcp"),
    part_of(
        [
            ("{discipline: codel, ecn: true}", "{ecn: on}"),
            ("fq_codel", "{ecn: accurate}"),
            ("{discipline: pie, ecn: true}", "{ecn: on, congestion_control: {server: reno}}"),
            ("{discipline: red, ecn: true, size: 300 kB}", "{ecn: on}"),
            ("cake", "{ecn: on}"),
            ("dualpi2", "{ecn: on}"),
        ],
        2,
    ),
)
def test_connections_with_ecn_get_marks_instead_of_drops(
    linklab: Linklab, scenario: ScenarioFile, queue: str, tcp: str
) -> None:
    file = scenario("marked", lte=link(queue), more=f"tcp: {tcp}\n")
    found = figures(Path(fetched(linklab, file, ["cubic"]).json["run_dir"]))
    assert found.marked_packets > 5
    assert found.dropped_packets <= found.marked_packets / 5


def test_the_seed_decides_what_a_discipline_draws(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("drawn", lte=link("fq_pie"))

    def written(seed: int) -> Any:
        run_dir = Path(fetched(linklab, file, ["cubic"] * 4, seed).json["run_dir"])
        names = ("outcome.json", "queues.jsonl", "sojourns.jsonl", "client.out")
        return [(run_dir / name).read_text() for name in names]

    first = written(1)
    assert written(1) == first
    assert written(2) != first


SENDER = """
import socket, sys, time
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"rmnet0")
sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200_000)
sock.connect((sys.argv[1], int(sys.argv[2])))
begin, sent = time.monotonic(), []
while time.monotonic() < begin + float(sys.argv[3]):
    sent.append((time.monotonic() - begin, sock.send(bytes(10_000))))
half = sent[-1][0] / 2
print([sum(size for at, size in sent if at > half)])
"""
"""Prints the bytes of the second half of the time, as the probe for the downlink does."""

READER = """
import socket, sys
connection = socket.create_server(("", int(sys.argv[1]))).accept()[0]
while connection.recv(1 << 20):
    pass
"""


@pytest.mark.parametrize(
    ("direction", "isolation", "hosts"),
    [
        (direction, *isolated)
        for row, direction in enumerate(("down", "up"))
        for column, isolated in enumerate((("", True), (", isolation: flows", False)))
        if is_in_part(row, column, 2)
    ],
)
def test_cake_gives_a_host_its_half_however_many_connections_another_has(
    linklab: Linklab, scenario: ScenarioFile, direction: str, isolation: str, hosts: bool
) -> None:
    """Beside 2 to 8 connections of another host, as a home router does it."""
    connections = Random(direction).randint(2, 8)
    more = f"traffic:\n  - {{link: lte, direction: {direction}, bulk: {{connections: {connections}}}}}\n"
    lte = f"down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, queue: {{discipline: cake{isolation}}}"
    file = scenario("homes", lte=lte, more=more)
    if direction == "down":
        done = fetched(linklab, file, ["cubic"])
    else:
        server = ("--server", shlex.join(["python3", "-c", READER, "{port}"]))
        client = ("python3", "-c", SENDER, "{address}", "{port}", SECONDS)
        done = succeeded(linklab, "exec", file, *server, "--", *client)
    (own_bytes,) = json.loads((done.run_dir / "client.out").read_text())
    share = own_bytes * 8 / (SECONDS / 2) / (20e6 * 1448 / 1514)
    assert share == pytest.approx(1 / 2 if hosts else 1 / (1 + connections), rel=0.15)


UPLINK = """
import socket, time
one, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
for sock in (one, other):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"rmnet0")
one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 1)
for _ in range(200):
    for _ in range(3):
        other.sendto(bytes(1472), ("10.0.0.1", 9))
    one.sendto(bytes(1472), ("10.0.0.1", 9))
    time.sleep(0.01)
"""


BURST = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"rmnet0")
for _ in range(300):
    sock.sendto(bytes(int(sys.argv[1])), ("10.0.0.1", 9))
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_drop_head_has_room_for_packets_whatever_their_size(
    linklab: Linklab, scenario: ScenarioFile, seed: int
) -> None:
    """One for each 1514 B. The first packet of a burst leaves at once."""
    random = Random(seed)
    size_bytes = random.randint(2_000, 300_000)
    up = f"up: 10 Mbit/s, queue_up: {{discipline: drop-head, size: {size_bytes} B}}"
    file = scenario("room", lte=f"down: 10 Mbit/s, rtt: 20 ms, {up}")
    done = succeeded(linklab, "exec", file, "--", "python3", "-c", BURST, random.randint(1, 1472))
    queues = convert(lines(done.run_dir / "queues.jsonl"), list[QueueRecord])
    dropped = max(
        one.dropped_packets for one in queues if (one.link, one.direction) == ("lte", "up")
    )
    assert dropped == pytest.approx(300 - math.ceil(size_bytes / FRAME_BYTES), abs=2)


@pytest.mark.parametrize("kind", ["pie", "fq_pie"])
def test_the_kernel_rounds_pie_s_update_up_to_whole_10_ms(
    linklab: Linklab, scenario: ScenarioFile, kind: str
) -> None:
    random = Random(kind)
    asked_us = [round(1e6 * Pie().update_s), *(random.randint(1, 600_000) for _ in range(5))]
    script = f"ip link set lo up; for us in {shlex.join(map(str, asked_us))}; do " + (
        f"{program('tc')} qdisc replace dev lo root {kind} tupdate ${{us}}us && "
        f"{program('tc')} qdisc show dev lo; done"
    )
    client = ("unshare", "-rn", "sh", "-ec", script)
    done = succeeded(linklab, "exec", scenario("ticks"), "--", *client)
    shown = re.findall(r"tupdate (\d+)ms", (done.run_dir / "client.out").read_text())
    assert [int(one) for one in shown] == [10 * math.ceil(one / 10_000) for one in asked_us]
    assert int(shown[0]) == 1e3 * Pie().update_s


def test_packets_with_the_scalable_codepoint_have_times_of_their_own(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Of four packets that come at once, the one with ECT(1) waits for three others of 1211.2 us in a
    queue for all, and for one in DualPI2."""
    waited = {}
    for name in ("drop-tail", "dualpi2"):
        up = f"down: 20 Mbit/s, up: 10 Mbit/s, rtt: 20 ms, queue_up: {name}"
        file = scenario("codepoint", lte=up)
        done = succeeded(linklab, "exec", file, "--", "python3", "-c", UPLINK)
        found = [
            line
            for line in lines(done.run_dir / "sojourns.jsonl")
            if (line["link"], line["direction"], line["scalable"]) == ("lte", "up", True)
        ]
        assert [sum(line["buckets"]) for line in found] == [200]
        waited[name] = sojourns.quantile_s(found[0]["buckets"], 0.5)
    assert waited["drop-tail"] == pytest.approx(3 * 1514 * 8 / 10e6, rel=1 / 16)
    assert waited["dualpi2"] == pytest.approx(1514 * 8 / 10e6, rel=1 / 16)


def test_scalable_packets_do_not_wait_behind_classic_ones(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """DualPI2 marks scalable packets that waited 1 ms; classic ones wait about 15 ms. At 50 Mbit/s,
    because 1 ms has to be more than two packets (RFC 9332, appendix A.1)."""
    queue = "{discipline: dualpi2, scalable: ect}"
    file = scenario("both", lte=f"down: 50 Mbit/s, up: 50 Mbit/s, rtt: 40 ms, queue: {queue}")
    done = fetched(linklab, file, ["dctcp", "cubic"], seconds=40)  # 20 s are mostly slow start.
    run_dir = done.run_dir
    rtts_ms: dict[str, list[float]] = {}
    for line in (run_dir / "server.out").read_text().splitlines():
        control, rtt_us = line.split()
        rtts_ms.setdefault(control, []).append(int(rtt_us) / 1e3)
    assert sorted(rtts_ms["dctcp"])[len(rtts_ms["dctcp"]) // 2] < 40 + 2
    assert sorted(rtts_ms["cubic"])[len(rtts_ms["cubic"]) // 2] > 40 + 5
    scalable, classic = json.loads((run_dir / "client.out").read_text())
    # One dctcp gets 2.1 times the rate of one cubic; four get 1.1 times that of four.
    assert 1 / 3 < scalable / classic < 3


@pytest.mark.parametrize(
    ("ecn", "flags", "data_bits"),
    [("passive", 0, 0), ("on", 0x0C0, 2), ("accurate", 0x1C0, 2)],
)
def test_connections_ask_for_ecn_as_the_scenario_says(
    linklab: Linklab, scenario: ScenarioFile, ecn: str, flags: int, data_bits: int
) -> None:
    """By the flags ECE and CWR of the SYN (RFC 3168), with AE for AccECN (RFC 9768), and the ECN field
    of data."""
    file = scenario("asks", size="100 kB", more=f"tcp: {{ecn: {ecn}}}\n")
    done = succeeded(linklab, "run", file, "-a", "single-wifi", "--pcap", "wifi")
    with (done.run_dir / "wifi.pcap").open("rb") as file_of_packets:
        packets = [dpkt.ethernet.Ethernet(one).data for _, one in dpkt.pcap.Reader(file_of_packets)]
    syn = bytes(packets[0].data)
    assert (syn[12] << 8 | syn[13]) & 0x1C0 == flags
    assert {one.tos & 3 for one in packets if len(one.data.data) > 1000} == {data_bits}


def test_accurate_ecn_counts_each_mark(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Some hundred marks, so that the field of three bits wraps often."""
    queue = "{discipline: dualpi2, scalable: ect}"
    wifi = f"down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, queue_down: {queue}"
    file = scenario("counts", size="2 MB", wifi=wifi, more="tcp: {ecn: accurate}\n")
    run_dir = succeeded(linklab, "run", file, "-a", "single-wifi", "--pcap", "wifi").run_dir
    found = counted(run_dir / "wifi.pcap", bytes((10, 1, 0, 2)))
    last = [one for one in lines(run_dir / "queues.jsonl") if one["direction"] == "down"][-2:]
    (marked,) = (one["discipline"]["marked_packets"] for one in last if one["link"] == "wifi")
    assert found.marked == marked > 100
    assert found.counters > 1000
    assert not found.wrong
