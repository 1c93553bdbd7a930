import asyncio
import contextlib
import gc
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from linklab.relay import connections


def listening(kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    sock = socket.socket(type=kind)
    sock.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        sock.listen()
    return sock


@contextlib.asynccontextmanager
async def joined(server: asyncio.Server) -> AsyncIterator[tuple[str, int]]:
    """Where one reaches a server through a relay."""
    to = server.sockets[0].getsockname()
    front = await connections.listen(listening(), to)
    async with server, front:
        yield front.sockets[0].getsockname()


async def asked(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], question: bytes
) -> bytes:
    """All that a server answers through a relay to a question that has ended."""
    server = await asyncio.start_server(serve, sock=listening())
    async with joined(server) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(question)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer


async def test_everything_is_passed_on_both_ways_and_ends_are_told_apart() -> None:
    """A request of a megabyte to its end, then an answer of two."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await reader.read()
        writer.write(content * 2)
        await writer.drain()
        writer.close()

    assert await asked(serve, b"q" * 1_000_000) == b"q" * 2_000_000


async def test_an_answer_that_takes_long_after_the_question_s_end_is_no_garbage() -> None:
    """Nothing of asyncio's refers to who waits for it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await reader.read()
        for piece in (content, content):
            await asyncio.sleep(0.1)  # Garbage of the connection could be collected here.
            gc.collect()
            writer.write(piece)
        await writer.drain()
        writer.close()

    assert await asked(serve, b"what?") == b"what?what?"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(3))
    await writer.drain()
    writer.close()


async def echoes(address: tuple[str, int], count: int) -> bool:
    """Tells whether so many at a time get back what each says, a number."""

    async def one(number: int) -> bool:
        said = b"%03d" % number
        reader, writer = await asyncio.open_connection(*address)
        writer.write(said)
        answer = await reader.read()
        writer.close()
        return answer == said

    return all(await asyncio.gather(*map(one, range(count))))


async def test_200_connections_at_a_time() -> None:
    async with joined(await asyncio.start_server(echo, sock=listening())) as address:
        assert await echoes(address, 200)


async def test_one_at_a_time_where_there_is_room_for_one_that_waits() -> None:
    """A relay and a server behind it that takes its time to accept."""
    waiting = most = 0

    async def narrow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.002)  # Others could connect meanwhile.
        waiting -= 1
        writer.write(connections.GREETING)
        await echo(reader, writer)

    server = await asyncio.start_server(narrow, sock=listening())
    lanes = connections.free([server.sockets[0].getsockname()])
    front = await connections.listen(listening(), None, lanes=lanes)
    async with server, front:
        assert await echoes(front.sockets[0].getsockname(), 50)
    assert most == 1


async def test_connections_over_several_lanes_never_have_the_same_port() -> None:
    """slirp4netns has them come to the guest from one address. 400 that the kernel may choose ports for
    have six in common."""
    ports = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.append(writer.get_extra_info("peername")[1])
        writer.write(connections.GREETING)

    with socket.create_server(("0.0.0.0", 0)) as sock:
        server = await asyncio.start_server(serve, sock=sock)
        port = sock.getsockname()[1]
        lanes = connections.free(
            (f"127.0.{high}.{low}", port) for high in (1, 2) for low in range(200)
        )
        async with server:
            for end in [await connections._connected("", 0, lanes) for _ in range(400)]:
                end.break_off()
    assert len(ports) == 400
    assert len(set(ports)) == 400


async def test_one_relay_greets_another() -> None:
    server = await asyncio.start_server(echo, sock=listening())
    behind = server.sockets[0].getsockname()
    middle = await connections.listen(listening(), behind, greets=True)
    lanes = connections.free([middle.sockets[0].getsockname()])
    front = await connections.listen(listening(), None, lanes=lanes)
    async with server, middle, front:
        assert await echoes(front.sockets[0].getsockname(), 50)


async def test_who_is_not_greeted_in_time_is_let_go_and_those_behind_him_have_their_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of three connections is never greeted; the others wait for as long as it may take,
    and get through."""
    monkeypatch.setattr(connections, "CONNECT_TIMEOUT_S", 3.0)
    ended = []
    calls = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            await asyncio.sleep(0.2)  # The first attempt has ended by then.
            writer.write(connections.GREETING + b"there")
        else:
            with contextlib.suppress(ConnectionResetError):
                await reader.read()
            ended.append(calls)
        writer.close()

    async def one(address: tuple[str, int]) -> bytes | None:
        reader, writer = await asyncio.open_connection(*address)
        try:
            return await reader.read()
        except ConnectionResetError:
            return None
        finally:
            writer.close()

    server = await asyncio.start_server(serve, sock=listening())
    lanes = connections.free([server.sockets[0].getsockname()])
    front = await connections.listen(listening(), None, lanes=lanes)
    async with server, front:
        address = front.sockets[0].getsockname()
        answers = await asyncio.gather(*(one(address) for _ in range(3)))
    assert sorted(answers, key=str) == [None, b"there", b"there"]
    assert ended == [1], "the connection that led nowhere is closed"


async def test_who_goes_before_he_is_connected_leaves_nothing_behind() -> None:
    came, gone, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await gone.wait()
        writer.write(connections.GREETING)
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, sock=listening())
    lanes = connections.free([server.sockets[0].getsockname()])
    front = await connections.listen(listening(), None, lanes=lanes)
    async with server, front:
        _, writer = await asyncio.open_connection(*front.sockets[0].getsockname())
        await came.wait()
        reset(writer)
        await asyncio.sleep(0.1)  # The relay has read the reset by then.
        gone.set()
        await asyncio.wait_for(ended.wait(), 10)


def reset(writer: asyncio.StreamWriter) -> None:
    """Has the peer see a failure."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_broken_connection_is_broken_at_the_other_end_too() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"half")
        await writer.drain()
        await reader.read(1)
        reset(writer)

    server = await asyncio.start_server(serve, sock=listening())
    async with joined(server) as address:
        reader, writer = await asyncio.open_connection(*address)
        assert await reader.readexactly(4) == b"half"
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_where_nobody_answers_a_connection_breaks_at_once() -> None:
    with listening() as nobody:
        to = nobody.getsockname()
    front = await connections.listen(listening(), to)
    async with front:
        reader, _ = await asyncio.open_connection(*front.sockets[0].getsockname())
        with pytest.raises(ConnectionResetError):
            await reader.read()
