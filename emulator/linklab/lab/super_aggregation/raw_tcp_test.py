"""Tests raw_tcp.py. Its downloads: tests/loss_fetching_test.py."""

import select
import socket
import time
from contextlib import ExitStack

import pytest

from linklab.lab.super_aggregation.other_way import OtherWay
from linklab.lab.super_aggregation.raw_tcp import RawConnection

LOOPBACK = "127.0.0.1"


class Stream:
    """What has come of a stream."""

    def __init__(self) -> None:
        self.content = b""

    def arrived(self, position: int, content: bytes, trip_s: float, now_s: float) -> bool:
        if position == len(self.content):
            self.content += content
        return False


@pytest.fixture
def server(loopback: ExitStack) -> socket.socket:
    listener = loopback.enter_context(socket.socket())
    listener.bind((LOOPBACK, 0))
    listener.listen()
    listener.settimeout(60)
    return listener


@pytest.fixture
def stream() -> Stream:
    return Stream()


def connected(
    loopback: ExitStack, server: socket.socket, stream: Stream, way: OtherWay | None = None
) -> RawConnection:
    connection = RawConnection(
        LOOPBACK,
        server.getsockname(),
        b"question",
        stream.arrived,
        lambda: len(stream.content),
        lambda: (),
        way,
    )
    loopback.callback(connection.end)
    return connection


def accepted_by(
    loopback: ExitStack, server: socket.socket, connection: RawConnection, ends_s: float
) -> socket.socket:
    while not select.select([server], [], [], 0)[0] and time.monotonic() < ends_s:
        look_until_due(connection, 0.1)
    return loopback.enter_context(server.accept()[0])


def look_until_due(connection: RawConnection, wait_s: float) -> None:
    select.select([connection.fileno()], [], [], wait_s)
    connection.look(time.monotonic())


def test_it_asks_and_gets_an_answer_and_what_is_no_segment_is_nothing(
    loopback: ExitStack, server: socket.socket, stream: Stream
) -> None:
    raw = loopback.enter_context(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP))
    connection = connected(loopback, server, stream)
    for cut in (0, 10, 19):
        raw.sendto(bytes(cut), (LOOPBACK, 0))
    connection.look(time.monotonic())
    ends_s = time.monotonic() + 60
    accepted = accepted_by(loopback, server, connection, ends_s)
    accepted.settimeout(60)
    assert accepted.recv(100) == b"question"
    accepted.sendall(b"answer" * 1000)
    while len(stream.content) < 6000 and time.monotonic() < ends_s:
        look_until_due(connection, 0.1)
    assert stream.content == b"answer" * 1000
    accepted.close()


def test_where_nothing_arrives_the_other_way_tells_the_sender(
    loopback: ExitStack, server: socket.socket, stream: Stream
) -> None:
    told = loopback.enter_context(
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    )
    told.settimeout(0)
    connection = connected(loopback, server, stream, OtherWay("lo", LOOPBACK, LOOPBACK))
    ends_s = time.monotonic() + 60
    accepted = accepted_by(loopback, server, connection, ends_s)
    assert not select.select([told], [], [], 0)[0], "nothing has begun"
    accepted.sendall(b"answer")
    while not select.select([told], [], [], 0)[0] and time.monotonic() < ends_s:
        look_until_due(connection, 0.1)
    assert stream.content == b"answer"
    port, client_port = server.getsockname()[1], accepted.getpeername()[1]
    quoted = told.recv(200)[20 + 8 + 20 :]
    assert quoted[:4] == port.to_bytes(2) + client_port.to_bytes(2)
