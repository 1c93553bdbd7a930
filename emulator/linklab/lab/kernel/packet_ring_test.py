"""Tests the ring on a real device."""

import contextlib
import socket
import time

import pytest

from linklab.core.round_trips import measured
from linklab.lab.kernel import packet_ring
from linklab.lab.kernel.packet_ring import PacketRing


@pytest.fixture
def ring(loopback: contextlib.ExitStack) -> PacketRing:
    return loopback.enter_context(contextlib.closing(PacketRing("lo")))


_FAMILIES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}


def exchange(messages: int, size: int = 1000, host: str = "127.0.0.1") -> tuple[int, int]:
    """Sends messages one after another over TCP. Returns both ports."""
    with (
        socket.create_server((host, 0), family=_FAMILIES[host]) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            for _ in range(messages):
                client.sendall(bytes(size))
                assert len(accepted.recv(size, socket.MSG_WAITALL)) == size
                accepted.sendall(b"answer")
                assert client.recv(6, socket.MSG_WAITALL) == b"answer"
            return client.getsockname()[1], server.getsockname()[1]


@pytest.mark.parametrize(("host", "protocol"), [("127.0.0.1", 9), ("::1", 6)])
def test_headers_and_times_of_all_tcp_packets_in_both_directions(
    ring: PacketRing, host: str, protocol: int
) -> None:
    assert ring.seen() == []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.sendto(bytes(100), ("127.0.0.1", 9))
    before_ns = time.time_ns()
    client, server = exchange(20, host=host)
    seen = ring.seen()
    assert seen is not None
    assert {one.header[protocol] for one in seen} == {socket.IPPROTO_TCP}
    assert max(len(one.header) for one in seen) <= packet_ring.HEADER_BYTES
    times_ns = [one.t_ns for one in seen]
    assert before_ns <= min(times_ns) <= max(times_ns) <= time.time_ns()
    # On a loopback each packet leaves, and comes.
    assert sum(one.leaves for one in seen) == sum(not one.leaves for one in seen) > 40
    trips = list(measured((one.t_ns, one.leaves, one.header) for one in seen))
    assert {one.port for one in trips} == {client, server}
    assert sum(one.port == client for one in trips) >= 20
    assert all(0 < one.length_ns < 10_000_000_000 for one in trips)


def test_what_does_not_fit_is_said(
    loopback: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_ring, "_BLOCKS", 1)
    with contextlib.closing(PacketRing("lo")) as small:
        exchange(5)
        assert small.seen()
        exchange(200)
        assert small.seen() is None
