"""Answers HTTP requests in JSON, after the rules of `request_guard.py`."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import msgspec

from linklab.realtime import proof, request_guard
from linklab.realtime import token as livetoken
from linklab.realtime.bounded_server import PATIENCE_S, BoundedServer
from linklab.realtime.messages import RefusedError

MOST_BODY_BYTES: Final = 4096


class AnsweringHandler(BaseHTTPRequestHandler):
    """Answers requests. `token` and `challenges` are the server's."""

    token: str
    challenges: proof.Challenges
    server: BoundedServer
    timeout = PATIENCE_S

    def require_host(self) -> None:
        """Raises RefusedError if the request's host can be rebound (DNS rebinding)."""
        if not request_guard.host_is_ours(self.headers):
            raise RefusedError(
                HTTPStatus.FORBIDDEN,
                "this host name is not the lab's",
                "Host",
                "localhost or an IP address",
            )

    def require_own_page(self) -> None:
        """Raises RefusedError if a page of another site sent the request."""
        if not request_guard.origin_is_ours(self.headers):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "a page of another site reads and commands no lab"
            )

    def require_token(self, body: bytes) -> str:
        """Returns the challenge if the request is signed with the token, "" if it has the token
        itself. Raises RefusedError if neither."""
        challenge, colon, signed = self.headers.get(proof.HEADER, "").partition(":")
        about = f"{self.command} {self.path}"
        if (
            self.challenges.use(challenge)
            and proof.is_signed(signed, self.token, about, challenge, body)
            if colon
            else request_guard.has_token(self.headers, self.token)
        ):
            return challenge
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            "a command needs the lab's token: the lab says where it is when it starts; set "
            f"{livetoken.ENVIRONMENT}",
        )

    def body(self) -> bytes:
        """Returns the request's body, which can be read once. Raises RefusedError."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "how long is the command?") from None
        if not 0 <= length <= MOST_BODY_BYTES:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is no command")
        return self.rfile.read(length)

    def refuse(self, error: RefusedError, more: dict[str, str] | None = None) -> None:
        self.answer_json(error.status, error.problem, more=more)

    def answer_json(
        self,
        status: HTTPStatus,
        content: Any,
        challenge: str = "",
        more: dict[str, str] | None = None,
    ) -> None:
        """Answers with JSON, or without content if that is None. The answer to a challenge is signed."""
        text = json.dumps(msgspec.to_builtins(content), indent=2).encode() + b"\n"
        text = b"" if content is None else text
        if challenge:
            more = {proof.HEADER: proof.signature(self.token, proof.ANSWER, challenge, text)}
        self.answer(status, text, "application/json" if text else None, more)

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
        for name, value in headers.items():
            self.send_header(name, value)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing, because there is a scrape every second."""
