"""Runs a server of UDP for tests, and a client whose datagrams take a lab's links by SOCKS5."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

from through_the_lab import PATIENCE_S


@contextlib.contextmanager
def echo() -> Iterator[int]:
    """Runs a server of this machine's loopback device: it answers datagrams with them and the sender's
    port, and accepts connections, which `--origin` asks for. Yields its port."""
    with (
        socket.create_server(("127.0.0.1", 0)) as accepting,
        socket.socket(type=socket.SOCK_DGRAM) as sock,
    ):
        port = accepting.getsockname()[1]
        sock.bind(("127.0.0.1", port))

        def serve_datagrams() -> None:
            with contextlib.suppress(OSError):
                while True:
                    data, sender = sock.recvfrom(1 << 16)
                    sock.sendto(data + b" from %d" % sender[1], sender)

        def serve_connections() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = accepting.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(4096)
                        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")

        for serve in (serve_datagrams, serve_connections):
            threading.Thread(target=serve, daemon=True).start()
        yield port


NO_ANSWER_S = 2.0
"""The time after which an answer that must not come counts as none."""


class Association:
    """A UDP association with a proxy of the loopback device (RFC 1928, 7)."""

    def __init__(self, proxy: int) -> None:
        self.tcp = socket.create_connection(("127.0.0.1", proxy), PATIENCE_S)
        self.tcp.sendall(b"\x05\x01\x00" + b"\x05\x03\x00\x01" + bytes(6))
        said = self.tcp.makefile("rb").read(12)
        assert said[:6] == b"\x05\x00\x05\x00\x00\x01", said
        self.at = (socket.inet_ntoa(said[6:10]), int.from_bytes(said[10:]))
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.connect(self.at)

    def close(self) -> None:
        """Ends the association."""
        self.tcp.close()
        self.udp.close()

    def ask(
        self,
        address: str,
        port: int,
        said: bytes,
        *,
        fragment: int = 0,
        patience_s: float = PATIENCE_S,
    ) -> bytes | None:
        """Returns the answer to a datagram, without its header; None if there is none in time. A late
        answer to an earlier one, which said something else, is no answer to this one."""
        header = bytes((0, 0, fragment, 1)) + socket.inet_aton(address) + port.to_bytes(2)
        self.udp.send(header + said)
        deadline = time.monotonic() + patience_s
        while (left_s := deadline - time.monotonic()) > 0:
            self.udp.settimeout(left_s)
            try:
                answer = self.udp.recv(1 << 16)
            except TimeoutError:
                break
            assert answer[:10] == bytes(3) + header[3:]
            if answer[10:].startswith(said):
                return answer[10:]
        return None

    def rtt_s(self, address: str, port: int) -> float:
        """Returns the shortest round trip of ten datagrams."""
        found = []
        for number in range(10):
            begun = time.monotonic()
            answer = self.ask(address, port, b"%d" % number)
            assert answer is not None
            assert answer.startswith(b"%d from " % number)
            found.append(time.monotonic() - begun)
        return min(found)
