"""Tests mirror.py with a server on the loopback device whose answers a test cuts."""

import re
import socket
import time
from collections.abc import Iterator

import pytest

from linklab.lab.super_aggregation import mirror
from linklab.lab.super_aggregation.http_ranges import AnswerError, File
from linklab.lab.super_aggregation.mirror import Mirror

CONTENT = bytes(range(250)) * 4
FILE = File(len(CONTENT), '"abc"')


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def questions(connection: socket.socket, count: int) -> list[tuple[int, int]]:
    """So many ranges that were asked for, ends excluded."""
    text = b""
    while text.count(b"\r\n\r\n") < count:
        text += connection.recv(1 << 16)
    assert text.count(b'If-Range: "abc"') == count
    return [(int(one), int(other) + 1) for one, other in re.findall(rb"bytes=(\d+)-(\d+)", text)]


def answer(begin: int, end: int, tag: str = '"abc"') -> bytes:
    head = (
        f"HTTP/1.1 206 P\r\nETag: {tag}\r\nContent-Length: {end - begin}\r\n"
        f"Content-Range: bytes {begin}-{end - 1}/{len(CONTENT)}\r\n\r\n"
    )
    return head.encode() + CONTENT[begin:end]


def looked(one: Mirror, wanted: int) -> dict[int, bytes]:
    """What it brings until that are so many bytes."""
    got: dict[int, bytes] = {}
    deadline_s = time.monotonic() + 60
    while sum(map(len, got.values())) < wanted and time.monotonic() < deadline_s:
        got.update(one.look(time.monotonic()))
    return got


def opened(listening: socket.socket) -> tuple[Mirror, socket.socket]:
    """A mirror that is connected, and the server's end."""
    now_s = time.monotonic()
    one = Mirror("lo", "127.0.0.1", listening.getsockname(), "/x", now_s)
    assert not one.keeps_up(now_s)
    one.of(FILE)
    connection, _ = listening.accept()
    connection.settimeout(60)
    while not one.reads:
        assert one.writes
        list(one.look(time.monotonic()))
    return one, connection


def test_each_part_is_asked_for_at_once_on_one_connection(listening: socket.socket) -> None:
    one, connection = opened(listening)
    now_s = time.monotonic()
    assert one.keeps_up(now_s)
    one.fetch(10, 20, now_s)
    one.fetch(300, 310, now_s)
    assert not one.keeps_up(now_s + 60)
    assert questions(connection, 2) == [(10, 20), (300, 310)]
    connection.sendall(answer(10, 20) + answer(300, 310))
    assert looked(one, 20) == {10: CONTENT[10:20], 300: CONTENT[300:310]}
    assert one.keeps_up(now_s + 60)
    one.close()
    connection.close()


def test_what_a_broken_connection_owes_is_asked_for_again(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "AGAIN_S", 0.05)
    one, connection = opened(listening)
    one.fetch(10, 20, time.monotonic())
    one.fetch(300, 310, time.monotonic())
    assert len(questions(connection, 2)) == 2
    connection.sendall(answer(10, 20)[:-4])
    assert looked(one, 6) == {10: CONTENT[10:16]}
    connection.close()
    while one.reads:
        list(one.look(time.monotonic()))
    assert not one.keeps_up(time.monotonic())
    one.fetch(500, 505, time.monotonic())  # Meanwhile.
    assert not one.reads + one.writes
    time.sleep(0.06)  # Longer than AGAIN_S.
    list(one.look(time.monotonic()))
    again, _ = listening.accept()
    again.settimeout(60)
    while not one.reads:
        list(one.look(time.monotonic()))
    assert questions(again, 3) == [(16, 20), (300, 310), (500, 505)]
    again.sendall(answer(16, 20) + answer(300, 310) + answer(500, 505))
    assert set(looked(one, 19)) == {16, 300, 500}
    one.close()
    again.close()


def test_what_a_silent_link_owes_comes_over_the_own_one(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is missed later is asked of the other one again."""
    monkeypatch.setattr(mirror, "AGAIN_S", 0.05)
    one, connection = opened(listening)
    now_s = time.monotonic()
    one.fetch(10, 20, now_s)
    assert one.due_s == now_s + 10
    assert not list(one.look(now_s + 9.9))
    assert one.reads
    list(one.look(now_s + 10))
    assert connection.recv(1 << 16)  # The question.
    assert connection.recv(1 << 16) == b""
    with pytest.MonkeyPatch.context() as gone:
        gone.setattr(one, "_device", "gone0")
        gone.setattr(one, "_address", "127.0.0.7")
        list(one.look(now_s + 10.06))
        again, (address, _) = listening.accept()
    assert address == "127.0.0.7"
    while not one.reads:
        list(one.look(now_s + 10.06))
    assert not one.keeps_up(now_s + 10.06)
    again.settimeout(60)
    assert questions(again, 1) == [(10, 20)]
    again.sendall(answer(10, 20))
    assert looked(one, 10) == {10: CONTENT[10:20]}
    time.sleep(0.06)  # Longer than AGAIN_S.
    list(one.look(time.monotonic()))
    listening.accept()
    while not one.reads:
        list(one.look(time.monotonic()))
    assert one.keeps_up(time.monotonic())
    one.close()
    again.close()
    connection.close()


def test_a_file_that_has_changed_is_not_pieced_together(listening: socket.socket) -> None:
    one, connection = opened(listening)
    one.fetch(10, 20, time.monotonic())
    questions(connection, 1)
    connection.sendall(answer(10, 20, tag='"new"'))
    with pytest.raises(AnswerError, match="another one"):
        looked(one, 10)
    one.close()
    connection.close()
