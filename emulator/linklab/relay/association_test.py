import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from linklab.relay import association, connections

WELCOME = b"\x05\x00"
ASSOCIATE = b"\x05\x01\x00" + b"\x05\x03\x00\x01" + bytes(6)
FRAMED = ASSOCIATE.replace(b"\x05\x03", b"\x05\x83")
DONE = b"\x05\x00\x00\x01" + socket.inet_aton("10.9.9.9") + (4242).to_bytes(2)


class Server:
    """A SOCKS5 server behind the relay. `asked` are the clients' bytes up to their requests."""

    def __init__(self, answer: bytes = WELCOME + DONE) -> None:
        self.answer = answer
        self.asked = b""
        self.datagrams: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.writer: asyncio.StreamWriter

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.asked = await reader.readexactly(len(FRAMED))
        for byte in self.answer:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                length = int.from_bytes(await reader.readexactly(2))
                self.datagrams.put_nowait(await reader.readexactly(length))
        self.datagrams.put_nowait(None)
        writer.close()

    def send(self, *datagrams: bytes) -> None:
        self.writer.write(b"".join(len(one).to_bytes(2) + one for one in datagrams))


@contextlib.asynccontextmanager
async def relayed(server: Server) -> AsyncIterator[tuple[str, int]]:
    """Yields the address of a relay to the server."""
    behind = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    sock = socket.create_server(("127.0.0.1", 0))
    front = await connections.listen(sock, behind.sockets[0].getsockname(), associates=True)
    async with behind, front:
        yield front.sockets[0].getsockname()


async def associated(
    address: tuple[str, int], said: bytes = ASSOCIATE, pieces: int = 1
) -> tuple[asyncio.StreamWriter, asyncio.StreamReader, tuple[str, int]]:
    """Returns a connection with an association, and where its datagrams go."""
    reader, writer = await asyncio.open_connection(*address)
    for at in range(0, len(said), pieces):
        writer.write(said[at : at + pieces])
        await writer.drain()
        await asyncio.sleep(0.001)
    reply = await asyncio.wait_for(reader.readexactly(12), 10)
    assert reply[:6] == WELCOME + DONE[:4]
    return writer, reader, (socket.inet_ntoa(reply[6:10]), int.from_bytes(reply[10:]))


@pytest.fixture
def client() -> Iterator[socket.socket]:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(10)
        yield sock


async def received(sock: socket.socket) -> bytes:
    return await asyncio.to_thread(sock.recv, 1 << 16)


@pytest.mark.parametrize("pieces", [1, 2, 7, len(ASSOCIATE)])
async def test_datagrams_take_the_connection_of_the_association(
    client: socket.socket, pieces: int
) -> None:
    """Whatever pieces a request comes in."""

    server = Server()
    async with relayed(server) as address:
        writer, _, here = await associated(address, pieces=pieces)
        assert server.asked == FRAMED
        assert here[0] == "127.0.0.1"
        for said in (b"one", b"", bytes(60_000)):
            client.sendto(said, here)
            assert await asyncio.wait_for(server.datagrams.get(), 10) == said
        server.send(b"first", bytes(60_000))
        assert await received(client) == b"first"
        assert await received(client) == bytes(60_000)
        writer.close()
        assert await asyncio.wait_for(server.datagrams.get(), 10) is None


async def test_an_association_ends_with_its_connection(client: socket.socket) -> None:
    async with relayed(Server()) as address:
        writer, _, here = await associated(address)
        client.connect(here)
        writer.close()
        client.settimeout(0.1)
        with pytest.raises(ConnectionRefusedError):
            for _ in range(100):
                with contextlib.suppress(TimeoutError):
                    client.send(b"x")
                    await received(client)


async def test_a_server_that_ends_an_association_ends_the_connection(client: socket.socket) -> None:
    server = Server()
    async with relayed(server) as address:
        _, reader, _ = await associated(address)
        server.writer.close()
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_only_the_client_s_datagrams_are_relayed(client: socket.socket) -> None:
    """The first sender is the client, unless the client has said its port."""
    port = client.getsockname()[1].to_bytes(2)

    for said in (ASSOCIATE, ASSOCIATE[:-2] + port):
        server = Server()
        async with relayed(server) as address:
            writer, _, here = await associated(address, said)
            with socket.socket(type=socket.SOCK_DGRAM) as other:
                other.bind(("127.0.0.1", 0))
                if said == ASSOCIATE:
                    client.sendto(b"client", here)
                other.sendto(b"other", here)
                client.sendto(b"client", here)
                assert await asyncio.wait_for(server.datagrams.get(), 10) == b"client"
                server.send(b"answer")
                assert await received(client) == b"answer"
            writer.close()
            while (more := await asyncio.wait_for(server.datagrams.get(), 10)) is not None:
                assert more == b"client"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        ASSOCIATE.replace(b"\x05\x03", b"\x05\x01"),
        b"\x05",
        ASSOCIATE[:4],
    ],
)
async def test_other_connections_pass_unchanged(said: bytes) -> None:
    heard = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == said
        heard.set()
        writer.write(WELCOME + DONE + b"more")
        writer.close()

    behind = await asyncio.start_server(serve, "127.0.0.1", 0)
    sock = socket.create_server(("127.0.0.1", 0))
    front = await connections.listen(sock, behind.sockets[0].getsockname(), associates=True)
    async with behind, front:
        reader, writer = await asyncio.open_connection(*front.sockets[0].getsockname())
        writer.write(said)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 10)
        assert heard.is_set()
        if len(said) > 6:
            assert answer == WELCOME + DONE + b"more"
        writer.close()


async def test_a_refusal_of_the_server_passes() -> None:
    refusal = b"\x05\x01\x00\x01" + bytes(6)

    async with relayed(Server(WELCOME + refusal)) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(ASSOCIATE)
        assert await asyncio.wait_for(reader.readexactly(12), 10) == WELCOME + refusal
        writer.close()


async def test_a_connection_that_is_stuck_loses_datagrams_and_takes_no_memory(
    client: socket.socket,
) -> None:
    """The server reads nothing after the request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(FRAMED))
        writer.write(WELCOME + DONE)
        writer.transport.pause_reading()  # type: ignore[attr-defined]

    behind = await asyncio.start_server(serve, "127.0.0.1", 0)
    sock = socket.create_server(("127.0.0.1", 0))
    front = await connections.listen(sock, behind.sockets[0].getsockname(), associates=True)
    most = 0
    found: list[association.Association] = []
    made = association.Association.__init__

    def noted(self: association.Association, *words: object) -> None:
        made(self, *words)  # type: ignore[arg-type]
        found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(association.Association, "__init__", noted)
        async with behind, front:
            writer, _, here = await associated(front.sockets[0].getsockname())
            for _ in range(2000):
                client.sendto(bytes(20_000), here)
                await asyncio.sleep(0)
                most = max(most, found[0]._server.get_write_buffer_size())
            writer.transport.abort()
    assert 500_000 < most < association._MOST_WAITING_BYTES + 100_000
