import os
import socket
from collections.abc import Iterator

import pytest

from linklab.lab.player.connections import OpenConnections


@pytest.fixture
def watching() -> Iterator[OpenConnections]:
    watching = OpenConnections(os.getpid(), (4, 6))
    yield watching
    watching.close()


def test_open_connections_are_told_by_their_own_address(watching: OpenConnections) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert port not in watching.of("127.0.0.0/8", (4,))  # Listening is not open
        with socket.create_connection(("127.0.0.1", port)) as client:
            own = client.getsockname()[1]
            found = watching.of("127.0.0.0/24", (4,))
            assert {own, port} & found >= {own}
            assert own not in watching.of("10.1.0.0/24", (4, 6))
        accepted, _ = server.accept()
        accepted.close()
    assert own not in watching.of("127.0.0.0/8", (4,))


def test_connections_of_ipv6_are_told_too(
    watching: OpenConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel prints 2001:db8:1::2 and 2001:db8:2::2."""
    local = "B80D0120{}0000000002000000:{}"
    lines = [
        f"  0: {local.format('00000100', '8E24')} {local.format('00000000', '01BB')} 01 0",
        f"  1: {local.format('00000200', '8E25')} {local.format('00000000', '01BB')} 01 0",
        f"  2: {local.format('00000100', '8E26')} {local.format('00000000', '01BB')} 06 0",
    ]
    text = "  sl  local_address\n" + "\n".join(line.replace(" 01 0", " 01 0 0") for line in lines)
    monkeypatch.setattr(watching, "_text", lambda _: text)
    assert watching.of("10.1.0.0/24", (6,)) == {0x8E24}
