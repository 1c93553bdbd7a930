"""Opens the sockets of UDP associations (RFC 1928, 7) near their clients.

A SOCKS5 server in another network namespace cannot receive a client's datagrams. So the relay between
them opens the association's socket, and carries the datagrams over the association's TCP connection.
The request then asks for `_FRAMED` instead (`client/internal/socks`, `AssociateFramed`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

_VERSION: Final = 5
_UDP_ASSOCIATE: Final = 3
_FRAMED: Final = 0x83
_ADDRESS_BYTES: Final = {1: 4, 4: 16}
_NAME: Final = 3
_METHOD_BYTES: Final = 2
"""The server's answer to the client's offer of methods."""

_DATAGRAM_BYTES: Final = (1 << 16) - 1
_AT_ONCE: Final = 32
"""The most datagrams that are read before others have their turn."""

_MOST_WAITING_BYTES: Final = 1 << 20
"""The client's further datagrams are lost while so much waits for the connection."""


_REFUSED: Final = bytes((_VERSION, 1, 0, 1, 0, 0, 0, 0, 0, 0))


def _end_of_address(said: bytes, at: int) -> int | None:
    """Returns where an address and its port end whose type is at this place. None if that is not said
    yet."""
    if len(said) < at + 2:
        return None
    length = 1 + said[at + 1] if said[at] == _NAME else _ADDRESS_BYTES.get(said[at], 0)
    end = at + 1 + length + 2
    return end if len(said) >= end else None


class Association:
    """Follows a client's connection with a SOCKS5 server, and serves an association if it becomes one.

    `own` is the address by which the client reaches the relay, `client` the client's host.
    """

    def __init__(self, own: str, client: str, server: asyncio.Transport) -> None:
        self._own = own
        self._client = client
        self._client_port = 0
        self._server = server
        self._asked = b""
        self._answered = b""
        self._is_other = False
        self._is_association = False
        self._socket: socket.socket | None = None
        self._frames = bytearray()

    def from_client(self, data: bytes) -> bytes:
        """Returns what to send to the server for the client's bytes."""
        if self._is_other:
            return data
        if self._is_association:
            return b""  # RFC 1928 has nothing more on this connection.
        start = len(self._asked)
        self._asked += data
        asked = self._asked
        if asked[0] != _VERSION:
            return self._leave(data)
        if len(asked) == 1 or len(asked) <= (command := 2 + asked[1] + 1):
            return data
        if asked[command] != _UDP_ASSOCIATE:
            return self._leave(data)
        passed = bytearray(data)
        if command >= start:
            passed[command - start] = _FRAMED
        end = _end_of_address(asked, command + 2)
        if end is not None:
            self._is_association = True
            self._note_port(asked[command + 2 : end])
            del passed[end - start :]
        return bytes(passed)

    def from_server(self, data: bytes) -> bytes:
        """Returns what to send to the client for the server's bytes."""
        if self._is_other:
            return data
        if self._socket is not None:
            self._answer(data)
            return b""
        start = len(self._answered)
        self._answered += data
        answered = self._answered
        method, reply = answered[start:_METHOD_BYTES], answered[_METHOD_BYTES:]
        if len(reply) > 1 and reply[1] != 0:
            self._leave(data)
            return method + reply
        end = _end_of_address(reply, 3)
        if end is None:
            return method
        try:
            self._socket = self._opened()
        except OSError:
            self._leave(data)
            self._server.abort()
            return method + _REFUSED
        port: int = self._socket.getsockname()[1]
        self._answer(reply[end:])
        return method + bytes((_VERSION, 0, 0, 1)) + socket.inet_aton(self._own) + port.to_bytes(2)

    def close(self) -> None:
        """Closes the association's socket. Each of the two connections calls this at its end."""
        if self._socket is not None and self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()

    def _leave(self, data: bytes) -> bytes:
        self._is_other = True
        self._asked = self._answered = b""
        return data

    def _note_port(self, address: bytes) -> None:
        """Notes the port from which the client expects to send. A client behind a NAT does not know."""
        if address[0] == 1 and address[1:5] in (bytes(4), socket.inet_aton(self._client)):
            self._client_port = int.from_bytes(address[5:])

    def _opened(self) -> socket.socket:
        """Opens the socket to the client. Raises OSError."""
        sock = socket.socket(type=socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.bind((self._own, 0))
        except OSError:
            sock.close()
            raise
        asyncio.get_running_loop().add_reader(sock, self._arrived, sock)
        return sock

    def _arrived(self, sock: socket.socket) -> None:
        """Sends the client's datagrams to the server."""
        with contextlib.suppress(OSError):
            for _ in range(_AT_ONCE):
                data, (host, port) = sock.recvfrom(_DATAGRAM_BYTES)
                self._client_port = self._client_port or (port if host == self._client else 0)
                is_client = (host, port) == (self._client, self._client_port)
                if is_client and self._server.get_write_buffer_size() < _MOST_WAITING_BYTES:
                    self._server.write(len(data).to_bytes(2) + data)

    def _answer(self, data: bytes) -> None:
        """Sends the server's datagrams to the client, as soon as the client's port is known."""
        self._frames += data
        frames, at = self._frames, 0
        while len(frames) >= at + 2 and len(frames) >= (
            end := at + 2 + int.from_bytes(frames[at : at + 2])
        ):
            if self._client_port and self._socket is not None:
                with contextlib.suppress(OSError):  # A full queue loses datagrams.
                    self._socket.sendto(frames[at + 2 : end], (self._client, self._client_port))
            at = end
        del frames[:at]
