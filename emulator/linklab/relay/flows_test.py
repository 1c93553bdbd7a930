import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from linklab.relay import flows
from linklab.relay.rule import PROGRAM, Rule


@contextlib.contextmanager
def bound(host: str = "127.0.0.1", port: int = 0) -> Iterator[socket.socket]:
    """A socket for datagrams."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((host, port))
        sock.settimeout(20)
        yield sock


@pytest.fixture
def questions(request: pytest.FixtureRequest) -> Iterator[tuple[tuple[str, int], socket.socket]]:
    """The address at which a relay that is a program takes datagrams, and their target."""
    with bound(getattr(request, "param", "127.0.0.1")) as front, bound() as back:
        rule = Rule(descriptor=front.fileno(), to=back.getsockname(), udp=True)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM, json.dumps([rule])], pass_fds=[front.fileno()]
        )
        yield front.getsockname(), back
        process.kill()
        process.wait()


@pytest.mark.parametrize("questions", ["127.0.0.1", "::1"], indirect=True)
def test_datagrams_are_forwarded_and_answers_handed_back(
    questions: tuple[tuple[str, int], socket.socket],
) -> None:
    """One sender keeps its source port, so a connection of QUIC works. Another has its own."""
    address, back = questions
    senders = []
    for _ in range(2):
        with bound(address[0]) as asker:
            for number in range(3):
                asker.sendto(b"who? %d" % number, address)
                question, sender = back.recvfrom(100)
                assert question == b"who? %d" % number
                for answer in (b"me", b"again"):
                    back.sendto(answer, sender)
                    assert asker.recvfrom(100) == (answer, address)
                senders.append(sender)
    assert len(set(senders)) == 2
    assert senders[0] == senders[2]


async def exchanged(asker: socket.socket, address: tuple[str, int]) -> tuple[bytes, object]:
    loop = asyncio.get_running_loop()
    asker.setblocking(False)
    asker.sendto(b"x", address)
    return await asyncio.wait_for(loop.sock_recvfrom(asker, 100), 10)


class Echo(asyncio.DatagramProtocol):
    """Answers with the sender's port."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.transport.sendto(str(addr[1]).encode(), addr)  # type: ignore[attr-defined]


async def test_an_answer_comes_from_the_address_that_was_asked() -> None:
    """Also where the relay's socket has all addresses: here two of loopback."""

    loop = asyncio.get_running_loop()
    # The relay takes datagrams at all addresses, and the server answers at one of them.
    with bound("0.0.0.0") as front, bound() as first, bound() as second:
        front.setblocking(False)
        port = front.getsockname()[1]
        transport, _ = await loop.create_datagram_endpoint(Echo, ("127.0.0.1", 0))
        flows.Flows().take(front, transport.get_extra_info("sockname"))
        for address in (("127.0.0.5", port), ("127.0.0.6", port)):
            for asker in (first, second):
                assert (await exchanged(asker, address))[1] == address
        transport.close()
        loop.remove_reader(front)


async def test_flows_are_bounded_and_end_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that ends gets another port with its next datagram, as behind a NAT."""
    monkeypatch.setattr(flows, "MOST", 3)
    monkeypatch.setattr(flows, "IDLE_S", 1.0)

    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        front = stack.enter_context(bound())
        front.setblocking(False)
        address = front.getsockname()
        transport, _ = await loop.create_datagram_endpoint(Echo, ("127.0.0.1", 0))
        taken = flows.Flows()
        taken.take(front, transport.get_extra_info("sockname"))
        askers = [stack.enter_context(bound()) for _ in range(4)]
        ports = [(await exchanged(asker, address))[0] for asker in askers]
        assert len(taken._open) == 3
        assert (await exchanged(askers[3], address))[0] == ports[3]
        assert (await exchanged(askers[0], address))[0] != ports[0]
        await asyncio.sleep(1.6)
        assert not taken._open
        assert (await exchanged(askers[3], address))[0] != ports[3]
        transport.close()
        loop.remove_reader(front)


async def test_a_refused_flow_does_not_end_the_others() -> None:
    loop = asyncio.get_running_loop()
    with bound() as closed:
        nobody = closed.getsockname()
    with bound() as front, bound() as other, bound() as asker:
        taken = flows.Flows()
        front.setblocking(False)
        other.setblocking(False)
        taken.take(other, nobody)
        transport, _ = await loop.create_datagram_endpoint(Echo, ("127.0.0.1", 0))
        taken.take(front, transport.get_extra_info("sockname"))
        for _ in range(3):
            asker.sendto(b"x", other.getsockname())
            await asyncio.sleep(0.05)
        assert (await exchanged(asker, front.getsockname()))[1] == front.getsockname()
        transport.close()
        for one in (front, other):
            loop.remove_reader(one)
