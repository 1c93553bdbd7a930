import os
import socket

from linklab.lab.player.connections import OpenConnections


def test_open_connections_are_told_by_their_own_address() -> None:
    watching = OpenConnections(os.getpid())
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            port = server.getsockname()[1]
            assert port not in watching.of("127.0.0.0/8")  # Listening is not open
            with socket.create_connection(("127.0.0.1", port)) as client:
                own = client.getsockname()[1]
                found = watching.of("127.0.0.0/24")
                assert {own, port} & found >= {own}
                assert own not in watching.of("10.1.0.0/24")
            accepted, _ = server.accept()
            accepted.close()
        assert own not in watching.of("127.0.0.0/8")
    finally:
        watching.close()
