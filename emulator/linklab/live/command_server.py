"""Serves a live lab's metrics, status and commands over HTTP.

Anyone who reaches the address can read metrics and status. A command needs the lab's token
(`token.py`). Web pages of other sites cannot send commands. The token is in a header for which a
browser asks the lab first, and the lab allows no site. Requests of other origins are refused. So
are requests with another host name, against DNS rebinding.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from linklab.core.records import RecordError
from linklab.lab.player.control import Command
from linklab.live import token as livetoken
from linklab.live.address import is_loopback, to_text, without_mapping
from linklab.live.link_command import GUARD

MAX_COMMAND_BYTES = 4096

Obey = Callable[[Command], str]
"""A function that executes a command and returns a message. It raises ValueError if it cannot."""


class LiveServer:
    """Serves `/metrics`, `/status` and `POST /command` on `address` until `close`."""

    def __init__(
        self,
        address: tuple[str, int],
        metrics: Collector,
        status: Callable[[], dict[str, Any]],
        obey: Obey,
        token: str,
    ) -> None:
        class Handler(_Handler):
            pass

        Handler.metrics, Handler.status, Handler.obey = (
            metrics,
            staticmethod(status),
            staticmethod(obey),
        )
        Handler.token = token
        try:
            self._server = _Server(address, Handler)
        except OSError as error:
            raise OSError(f"cannot listen on {to_text(address)}: {error.strerror}") from None
        self.address = (address[0], self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's URL, without a path."""
        return f"http://{to_text(self.address)}"

    def close(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextlib.contextmanager
def serving(
    address: tuple[str, int], metrics: Collector, status: Callable[[], dict[str, Any]], obey: Obey
) -> Iterator[tuple[LiveServer, str]]:
    """Runs a LiveServer during the block. Yields it, and the path of its token or the token itself.

    Raises TokenError if the environment has an invalid token.
    """
    token = livetoken.chosen()
    with (
        contextlib.closing(LiveServer(address, metrics, status, obey, token)) as server,
        livetoken.kept(server.address, token) as path,
    ):
        yield server, str(path or f"{livetoken.ENVIRONMENT}={token}")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that closes its connection early."""


class _Handler(BaseHTTPRequestHandler):
    metrics: Collector
    status: Callable[[], dict[str, Any]]
    obey: Obey
    token: str
    timeout = 10

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif not self._host_is_ours():
            self._refuse(HTTPStatus.FORBIDDEN, "this host name is not the lab's")
        elif path in ("/", "/status"):
            self._answer_json(HTTPStatus.OK, type(self).status())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there are /metrics, /status and POST /command")

    def _metrics(self) -> None:
        encode, kind = choose_encoder(self.headers.get("Accept", ""))
        try:
            content = encode(self.metrics)
        except (RecordError, OSError) as error:
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return self._answer(HTTPStatus.OK, content, kind)

    def do_POST(self) -> None:
        if not self._host_is_ours():
            self._refuse(HTTPStatus.FORBIDDEN, "this host name is not the lab's")
        elif not self._origin_is_ours():
            self._refuse(HTTPStatus.FORBIDDEN, "a page of another site commands no lab")
        elif not self._has_token():
            self._refuse(
                HTTPStatus.FORBIDDEN,
                f"a command needs the lab's token: the lab says where it is when it starts; set "
                f"{livetoken.ENVIRONMENT}",
            )
        elif self.path != "/command":
            self._refuse(HTTPStatus.NOT_FOUND, "commands go to /command")
        else:
            self._command()

    def _command(self) -> None:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "how long is the command?")
        if not 0 <= length <= MAX_COMMAND_BYTES:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is no command")
        try:
            command = msgspec.json.decode(self.rfile.read(length), type=Command)
            said = type(self).obey(command)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        return self._answer_json(HTTPStatus.OK, {"done": said})

    def _host_is_ours(self) -> bool:
        """Tells whether the request's host is this machine's name or the address that received it.

        A rebound name is neither (DNS rebinding).
        """
        host = self.headers.get("Host", "")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        here = self.connection.getsockname()[0]
        return without_mapping(name) == without_mapping(here) or is_loopback(name)

    def _origin_is_ours(self) -> bool:
        """Tells whether no page of another origin sent the request.

        Browsers always send the origin with a command.
        """
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return site in ("none", "same-origin") and origin in (
            None,
            f"http://{self.headers['Host']}",
        )

    def _has_token(self) -> bool:
        given = self.headers.get(GUARD, "")
        return hmac.compare_digest(given.encode(), type(self).token.encode())

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._answer_json(status, {"error": why})

    def _answer_json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._answer(status, json.dumps(content, indent=2).encode() + b"\n", "application/json")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing, because there is a scrape every second."""
