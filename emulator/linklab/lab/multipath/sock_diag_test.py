"""Tests the kernel's reports on connections whose carried bytes the test knows."""

import errno
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from linklab.lab.kernel.netlink import GENERIC, SOCK_DIAG, Channel
from linklab.lab.multipath import path_manager, sock_diag

SIZE_BYTES = 100_000


@contextmanager
def connection(
    protocol: int, family: int = socket.AF_INET, address: str = "127.0.0.1"
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over the loopback that has carried SIZE_BYTES to the first."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, protocol))
        listener.bind((address, 0))
        listener.listen()
        client = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, protocol))
        client.connect(listener.getsockname())
        server = stack.enter_context(listener.accept()[0])
        server.sendall(bytes(SIZE_BYTES))
        left = SIZE_BYTES
        while left:
            left -= len(client.recv(left))
        client.sendall(b"done")
        server.recv(4)
        yield client, server


def test_plain_connections_are_no_subflows_and_those_that_go_are_told(loopback: ExitStack) -> None:
    diag, gone = (loopback.enter_context(closing(Channel(SOCK_DIAG))) for _ in range(2))
    gone.join(sock_diag.DESTROYED[4])
    with connection(socket.IPPROTO_TCP) as (client, _):
        answers = diag.dump(sock_diag.all_connections())
        assert len(answers) == 2  # Who listens is none.
        assert [sock_diag.subflow(one) for one in answers] == [None, None]
        port = client.getsockname()[1]
        (own,) = (
            found for one in answers if (found := sock_diag.carried(one)) and found.port == port
        )
        assert (own.address, own.received_bytes, own.acknowledged_bytes) == (
            "127.0.0.1",
            SIZE_BYTES,
            1 + len(b"done"),
        )
        # The other end, of the same address, has received one word.
        assert list(sock_diag.downloads(answers, "127.0.0.1")) == [own]
        assert list(sock_diag.downloads(answers, "127.0.0.2")) == []
        assert 0 < own.min_rtt_s <= own.rtt_s < 60
        assert 0 <= own.quiet_s < 60
        assert gone.heard() == []
        # An abort: nobody waits.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    told: set[int] = set()
    while port not in told:
        told |= {found.port for one in gone.heard() if (found := sock_diag.carried(one))}


def test_connections_of_ipv6_are_asked_for_apart(loopback: ExitStack) -> None:
    diag = loopback.enter_context(closing(Channel(SOCK_DIAG)))
    with connection(socket.IPPROTO_TCP, socket.AF_INET6, "::1") as (client, _):
        assert diag.dump(sock_diag.all_connections()) == []
        answers = diag.dump(sock_diag.all_connections(6))
        (own,) = sock_diag.downloads(answers, "::1")
        assert (own.port, own.received_bytes) == (client.getsockname()[1], SIZE_BYTES)


def test_subflows_say_of_which_connection_they_are(loopback: ExitStack) -> None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP).close()
    except OSError as error:
        assert error.errno == errno.EPROTONOSUPPORT
        pytest.skip("this kernel has no Multipath TCP")
    diag, generic = (loopback.enter_context(closing(Channel(one))) for one in (SOCK_DIAG, GENERIC))
    generic.join(path_manager.family(generic.request(path_manager.find_family())).events)
    with connection(socket.IPPROTO_MPTCP) as (client, _):
        found = [
            one for one in map(sock_diag.subflow, diag.dump(sock_diag.all_connections())) if one
        ]
        assert len(found) == 2
        port = client.getsockname()[1]
        (own,) = (one for one in found if one.tcp.port == port)
        assert own.tcp.received_bytes == SIZE_BYTES
        assert (own.identifier, own.is_backup, own.is_established) == (0, False, True)
        events = [one for one in map(path_manager.opened, generic.heard()) if one]
        assert (own.token, 0, "127.0.0.1", port) in [
            (one.token, one.identifier, one.address, one.port) for one in events
        ]
