"""Answers HTTP requests in JSON, after the rules of `request_guard.py`.

The live lab's server and that of `linklab serve` are made of it.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from linklab.core.errors import LinklabError
from linklab.realtime import request_guard
from linklab.realtime import token as livetoken
from linklab.realtime.bounded_server import PATIENCE_S, BoundedServer

MOST_BODY_BYTES: Final = 4096


class BodyError(LinklabError, ValueError):
    """A request's body is refused unread. `status` is the answer's."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class AnsweringHandler(BaseHTTPRequestHandler):
    """Answers requests. `token` is the server's."""

    token: str
    server: BoundedServer
    timeout = PATIENCE_S

    def strange_host(self) -> str | None:
        """Returns why the request's host is not this server's, or None (DNS rebinding)."""
        here = self.connection.getsockname()[0]
        if request_guard.host_is_ours(self.headers, here):
            return None
        return "this host name is not the lab's"

    def obstacle(self) -> str | None:
        """Returns why the request may change nothing, or None."""
        strange = self.strange_host()
        if strange is not None:
            return strange
        if not request_guard.origin_is_ours(self.headers):
            return "a page of another site commands no lab"
        if not self.knows_token():
            return (
                "a command needs the lab's token: the lab says where it is when it starts; set "
                f"{livetoken.ENVIRONMENT}"
            )
        return None

    def knows_token(self) -> bool:
        """Tells whether the request comes from a program that knows the token."""
        return request_guard.has_token(self.headers, type(self).token)

    def body(self) -> bytes:
        """Returns the request's body, which can be read once. Raises BodyError."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            raise BodyError(HTTPStatus.LENGTH_REQUIRED, "how long is the command?") from None
        if not 0 <= length <= MOST_BODY_BYTES:
            raise BodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is no command")
        return self.rfile.read(length)

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Answers with an error in words."""
        self.answer_json(status, {"error": why})

    def answer_json(
        self, status: HTTPStatus, content: Any, more: dict[str, str] | None = None
    ) -> None:
        """Answers with JSON."""
        text = json.dumps(content, indent=2).encode() + b"\n"
        self.answer(status, text, "application/json", more)

    def answer(
        self,
        status: HTTPStatus,
        content: bytes,
        kind: str | None,
        more: dict[str, str] | None = None,
    ) -> None:
        """Answers with content of some media type, and with the headers of all answers."""
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
        self.send_headers(request_guard.HEADERS | (more or {}))
        self.end_headers()
        self.wfile.write(content)

    def send_headers(self, headers: dict[str, str]) -> None:
        """Sends headers."""
        for name, value in headers.items():
            self.send_header(name, value)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing, because there is a scrape every second."""
