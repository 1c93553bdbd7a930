"""Tests socket_options.py."""

import socket
import time
from contextlib import ExitStack

import pytest

from linklab.lab.kernel import socket_options

LOOPBACK = "127.0.0.1"


def told(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """A socket of UDP that gets what the other one sends."""
    receiver, sender = (
        stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
    )
    receiver.bind((LOOPBACK, 0))
    receiver.setblocking(False)
    sender.connect(receiver.getsockname())
    return receiver, sender


def test_a_socket_that_drops_all_gets_nothing(loopback: ExitStack) -> None:
    receiver, sender = told(loopback)
    sender.send(b"before")
    socket_options.drop_all(receiver)
    sender.send(b"after")
    assert receiver.recv(10) == b"before"
    with pytest.raises(BlockingIOError):
        receiver.recv(10)


def test_a_time_comes_with_each_packet(loopback: ExitStack) -> None:
    receiver, sender = told(loopback)
    socket_options.stamp(receiver)
    before_ns = time.time_ns()
    sender.send(b"x")
    _, notes, _, _ = receiver.recvmsg(1, socket_options.NOTES_BYTES)
    seconds, nanoseconds = socket_options.stamped(notes)
    assert before_ns <= seconds * 10**9 + nanoseconds <= time.time_ns()


def test_there_is_as_much_room_as_is_asked_for(loopback: ExitStack) -> None:
    receiver, _ = told(loopback)
    socket_options.give_room(receiver, 64 << 20)
    assert receiver.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * (64 << 20)


def test_the_first_bytes_of_what_leaves_are_taken_and_what_arrives_is_not(
    loopback: ExitStack,
) -> None:
    leaving = loopback.enter_context(
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    )
    socket_options.take_leaving(leaving, 24)
    leaving.bind(("lo", socket_options.ALL_PROTOCOLS))
    _, sender = told(loopback)
    sender.send(bytes(100))
    # What leaves by the loopback arrives there, too.
    packet, (_, _, kind, _, _) = leaving.recvfrom(1000)
    assert (len(packet), kind) == (24, socket.PACKET_OUTGOING)
    with pytest.raises(BlockingIOError):
        leaving.recv(1000)
