"""Tests both ends of flows on the loopback device, on the real clock."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from linklab.core.free_ports import free_ports
from linklab.traffic.task import PROGRAM, EndTask

Start = Callable[[EndTask], subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts an end, and waits until it is ready."""
    started = []

    def started_one(task: EndTask) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield started_one
    for process in started:
        process.kill()
        process.communicate()


def task(kind: str, direction: str, **more: Any) -> tuple[EndTask, EndTask]:
    """Returns the tasks of the server's end and the other end."""
    common: EndTask = {
        "kind": kind,
        "address": "127.0.0.1",
        "port": free_ports(1),
        "device": "lo",
        "from_ns": 0,
        "to_ns": None,
        "congestion_control": "reno",
        "connections": 2,
        "pages": [],
        "packet_bytes": 100,
        "rate_bps": 80_000,
        "listens": True,
        "sends": direction == "down",
        **more,  # type: ignore[typeddict-item]
    }
    return common, {**common, "listens": False, "sends": direction == "up"}


def connections(end: subprocess.Popen[str]) -> int:
    """Returns how many connections an end has open."""
    found = psutil.Process(end.pid).net_connections("tcp")
    return sum(one.status == psutil.CONN_ESTABLISHED for one in found)


def counts(
    start: Start, pair: tuple[EndTask, EndTask], seconds: float | None, *, connected: int = 0
) -> list[dict[str, int]]:
    """Runs both ends, and returns what the sender and the receiver have counted. If they are ended
    after some seconds, these begin when the client has so many connections."""
    ends = [start(one) for one in pair]
    for end in ends:
        assert end.stdout is not None
        assert end.stdout.readline() == "\n"
    start_ns = time.monotonic_ns()
    for end in ends:
        assert end.stdin is not None
        end.stdin.write(f"{start_ns}\n")
        end.stdin.flush()
    if seconds is not None:
        patience = time.monotonic() + 20
        while connections(ends[1]) < connected:
            assert time.monotonic() < patience
            time.sleep(0.01)  # A busy machine connects later.
        time.sleep(seconds)
        for end in ends:
            end.send_signal(signal.SIGTERM)
    said = [json.loads(end.communicate(timeout=30)[0]) for end in ends]
    assert [end.returncode for end in ends] == [0, 0]
    return said if pair[0]["sends"] else said[::-1]


both_ways = pytest.mark.parametrize(
    ("direction", "address"), [("down", "127.0.0.1"), ("up", "::1")]
)
"""Each way and each family once."""


@both_ways
def test_bulk_flows_until_it_is_ended(start: Start, direction: str, address: str) -> None:
    sent, received = counts(start, task("bulk", direction, address=address), 0.5, connected=2)
    assert sent["bytes"] == 0
    assert received["bytes"] > 1_000_000


def test_a_flow_begins_and_ends_at_its_times(start: Start) -> None:
    """It lasts long enough for a client that a busy machine lets begin late."""
    begun = time.monotonic()
    pair = task("bulk", "up", from_ns=300_000_000, to_ns=2_000_000_000)
    _, received = counts(start, pair, None)
    assert time.monotonic() - begun > 2
    assert received["bytes"] > 0


def test_a_flow_that_has_not_begun_has_delivered_nothing(start: Start) -> None:
    _, received = counts(start, task("bulk", "up", from_ns=60_000_000_000), 0.2)
    assert received == {"bytes": 0}


@both_ways
def test_a_call_has_a_rate_and_delays(start: Start, direction: str, address: str) -> None:
    """100 packets of 100 bytes in a second. On a busy machine the call may begin, or the last packets
    may come, up to a second late."""
    pair = task("call", direction, to_ns=5_000_000_000, address=address)
    sent, received = counts(start, pair, None)
    assert 400 <= received["packets"] <= sent["sent"] <= 501
    assert received["bytes"] == 100 * received["packets"]
    assert received["numbered"] >= received["packets"]
    assert 0 <= received["delay_p50_ns"] <= received["delay_p95_ns"] <= received["delay_p99_ns"]


@pytest.mark.parametrize("direction", ["down", "up"])
def test_pages_are_fetched_one_after_the_other(start: Start, direction: str) -> None:
    pages = [(300_001, 50_000_000), (1, 50_000_000), (70_000, 3_600_000_000_000)]
    pair = task("web", direction, pages=pages)
    sent, received = counts(start, pair, 5)  # It takes 0.2 s on an idle machine.
    client = received if direction == "down" else sent
    assert client["pages"] == 3
    assert received["bytes"] == 370_002
    assert 0 < client["page_p50_ns"] <= client["page_p99_ns"]


def test_the_client_connects_again_when_its_connection_is_reset(start: Start) -> None:
    _, other = task("bulk", "up", connections=1)
    with socket.create_server((other["address"], other["port"])) as server:
        end = start(other)
        assert end.stdin is not None
        end.stdin.write(f"{time.monotonic_ns()}\n")
        end.stdin.flush()
        for _ in range(2):
            server.settimeout(20)
            connection, _ = server.accept()
            assert connection.recv(1)
            connection.close()


def test_bytes_of_other_programs_do_not_end_a_receiver(start: Start) -> None:
    server, _ = task("call", "up")
    end = start(server)
    assert end.stdout is not None
    assert end.stdin is not None
    assert end.stdout.readline() == "\n"
    end.stdin.write(f"{time.monotonic_ns()}\n")
    end.stdin.flush()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for content in (b"", b"short", bytes(7) + b"\xff" * 9, b"\xff" * 16):
            sock.sendto(content, (server["address"], server["port"]))
    time.sleep(0.3)
    assert end.poll() is None
    os.kill(end.pid, signal.SIGTERM)
    assert end.wait(10) == 0


def test_a_taken_port_is_said(start: Start) -> None:
    server, _ = task("bulk", "down")
    with socket.create_server((server["address"], server["port"])):
        _, said = start(server).communicate(timeout=20)
    assert said == f"port {server['port']} of 127.0.0.1: Address already in use\n"


def test_a_congestion_control_that_the_kernel_lacks_is_said(start: Start) -> None:
    for one in task("bulk", "down", congestion_control="nothing"):
        if one["sends"]:
            _, said = start(one).communicate(timeout=20)
            assert said.startswith("this kernel lacks the congestion control nothing: ")
