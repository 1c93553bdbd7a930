"""Serves a live lab's metrics, status, page and commands over HTTP.

Anyone who reaches the address can read metrics, status and page. What changes the lab needs its token
(`token.py`). `request_guard.py` has the rules against pages of others, `bounded_server.py` the limits.

It is Python's http.server, because the lab reads files in threads anyway. An asynchronous library
(aiohttp, Starlette with Uvicorn) would bring six to nine packages, a loop beside these threads, and
the same limits to write.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from linklab.core.records import RecordError
from linklab.lab.player.control import Command
from linklab.realtime import messages, page_files, proof, request_guard
from linklab.realtime import token as livetoken
from linklab.realtime.address import to_text
from linklab.realtime.answering import AnsweringHandler, BodyError
from linklab.realtime.bounded_server import BoundedServer
from linklab.realtime.link_command import LAB, UnknownLinkError
from linklab.realtime.messages import Downloads, LinkChange, RefusedError, lab_of, refused
from linklab.realtime.view import Cursor

MOST_STREAMS = 16
"""The most open pages. A browser opens six streams to a lab at most, and shares them between tabs."""

NEWS_S = 0.5
"""The time between two messages to a page. Queues are sampled as often."""

SAMPLE_PATIENCE_S = 8.0
"""The longest wait for a sample of the queues. Clients wait 10 s for the lab's answer."""

SAMPLE_POLL_S = 0.05

_NEWER_SAMPLES = 2
"""One may have been taken before the request, since a guest's files show late."""

STREAM_BUFFER_BYTES = 1 << 16
"""What the kernel holds for a page that does not read."""

Obey = Callable[[Command], str]
"""A function that executes a command and returns a message. It raises ValueError if it cannot."""


@dataclass(frozen=True)
class PageSource:
    """What the page shows.

    `news` returns what a reader does not have yet. `status` is the lab's. `saved` writes a scenario
    of what was done by hand, by its name and its time 0 in the run ("" for the lab's choice). It
    raises ValueError if there is nothing to save.
    """

    news: Callable[[Cursor], tuple[Cursor, dict[str, Any]]]
    saved: Callable[[str, str], str]


class LiveServer:
    """Serves `/metrics`, `/status`, `/lab` and perhaps a page on `address` until `close`."""

    def __init__(
        self,
        address: tuple[str, int],
        metrics: Collector,
        status: Callable[[], dict[str, Any]],
        obey: Obey,
        token: str,
        page: PageSource | None = None,
    ) -> None:
        class Handler(_Handler):
            pass

        Handler.metrics, Handler.status, Handler.obey = (
            metrics,
            staticmethod(status),
            staticmethod(obey),
        )
        Handler.token, Handler.page = token, page
        Handler.challenges = proof.Challenges()
        Handler.streams = threading.BoundedSemaphore(MOST_STREAMS)
        try:
            self._server = BoundedServer(address, Handler)
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
        self._server.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextlib.contextmanager
def serving(
    address: tuple[str, int],
    metrics: Collector,
    status: Callable[[], dict[str, Any]],
    obey: Obey,
    page: PageSource | None = None,
) -> Iterator[tuple[LiveServer, str, str]]:
    """Runs a LiveServer during the block. Yields it, its token, and where to find the token.

    Raises TokenError if the environment has an invalid token.
    """
    token = livetoken.chosen()
    with (
        contextlib.closing(LiveServer(address, metrics, status, obey, token, page)) as server,
        livetoken.kept(server.address, token) as path,
    ):
        yield server, token, livetoken.whereabouts(path, token)


class _Handler(AnsweringHandler):
    metrics: Collector
    status: Callable[[], dict[str, Any]]
    obey: Obey
    page: PageSource | None
    challenges: proof.Challenges
    streams: threading.BoundedSemaphore

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/metrics":
            self._metrics()
        elif (strange := self.strange_host()) is not None:
            self.refuse(HTTPStatus.FORBIDDEN, strange)
        elif path == proof.PATH:
            self.answer_json(HTTPStatus.OK, {"challenge": self.challenges.new()})
        elif path == "/status" and query == "sampled":
            self._sampled_status()
        elif path == LAB:
            self.answer_json(HTTPStatus.OK, msgspec.to_builtins(lab_of(type(self).status())))
        elif path == "/status" or (path == "/" and self.page is None):
            self.answer_json(HTTPStatus.OK, type(self).status())
        elif self.page is None:
            self.refuse(HTTPStatus.NOT_FOUND, f"there are /metrics, /status and {LAB}")
        elif path in page_files.files():
            file = page_files.files()[path]
            self.answer(HTTPStatus.OK, file.content, file.kind, request_guard.PAGE_HEADERS)
        elif path not in ("/news", "/scenario"):
            self.refuse(HTTPStatus.NOT_FOUND, f"there are /, /metrics, /status and {LAB}")
        elif not request_guard.origin_is_ours(self.headers):
            self.refuse(HTTPStatus.FORBIDDEN, "a page of another site reads no lab")
        elif path == "/news":
            self._stream(self.page)
        else:
            asked = dict(parse_qsl(query))
            self._scenario(self.page, asked.get("name", ""), asked.get("from", ""))

    def _sampled_status(self) -> None:
        """Answers with a status whose counters were sampled after the request."""
        seen: set[float] = set()
        deadline_s = time.monotonic() + SAMPLE_PATIENCE_S
        while time.monotonic() < deadline_s:
            status = type(self).status()
            seen.add((status["now"] or {}).get("sampled_s", 0.0))
            if len(seen) > _NEWER_SAMPLES:
                return self.answer_json(HTTPStatus.OK, status)
            time.sleep(SAMPLE_POLL_S)
        return self.refuse(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"no sample of the links within {SAMPLE_PATIENCE_S:.0f} s; allowed: a running lab whose "
            "scenario has a shorter sample",
        )

    def _metrics(self) -> None:
        encode, kind = choose_encoder(self.headers.get("Accept", ""))
        try:
            content = encode(self.metrics)
        except (RecordError, OSError) as error:
            return self.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return self.answer(HTTPStatus.OK, content, kind)

    def _scenario(self, page: PageSource, name: str, begins: str) -> None:
        try:
            text = page.saved(name, begins.strip())
        except (OSError, ValueError) as error:
            return self.refuse(HTTPStatus.BAD_REQUEST, str(error))
        return self.answer(HTTPStatus.OK, text.encode(), "application/yaml; charset=utf-8")

    def _stream(self, page: PageSource) -> None:
        """Sends news to a page until it goes away or no longer reads (server-sent events)."""
        if not self.streams.acquire(blocking=False):
            return self.refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_STREAMS} pages are open; close one"
            )
        try:
            self.server.keep(self.connection)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BUFFER_BYTES)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_headers(request_guard.HEADERS)
            self.end_headers()
            cursor = Cursor()
            while True:
                cursor, news = _news(page, cursor)
                news["status"] = type(self).status()
                self.wfile.write(b"data: " + json.dumps(news).encode() + b"\n\n")
                if self.server.closing.wait(NEWS_S):
                    return None
        finally:
            self.streams.release()

    def do_PATCH(self) -> None:
        self._signed = ""
        try:
            self._body = self.body()
        except BodyError as error:
            return self.refuse(error.status, str(error))
        if (obstacle := self.obstacle()) is not None:
            return self.refuse(HTTPStatus.FORBIDDEN, obstacle)
        path, _, name = self.path.partition("/links/")
        if path != LAB or bool(name) != ("/links/" in self.path):
            return self.refuse(HTTPStatus.NOT_FOUND, f"changes go to {LAB}/links/NAME and {LAB}")
        try:
            return self._answer_signed(HTTPStatus.OK, self._obey(unquote(name)))
        except RefusedError as error:
            problem = msgspec.to_builtins(error.problem)
            return self._answer_signed(error.status, problem)
        except OSError as error:
            return self.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    def _obey(self, link: str) -> dict[str, Any]:
        """Executes the change in the request's body: of a link, or of the downloads (""). Returns the
        answer. Raises RefusedError, OSError."""
        if link:
            command = messages.command_of(link, messages.decoded(self._body, LinkChange))
        else:
            command = messages.decoded(self._body, Downloads).command()
        try:
            done = type(self).obey(command)
        except UnknownLinkError as error:
            raise refused(HTTPStatus.NOT_FOUND, error) from None
        except ValueError as error:
            raise refused(HTTPStatus.UNPROCESSABLE_ENTITY, error) from None
        links = lab_of(type(self).status()).links if link else {}
        return {**msgspec.to_builtins(links.get(link, {})), "done": done}

    def _answer_signed(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        mark = proof.signature(self.token, proof.ANSWER, self._signed, text)
        more = {proof.HEADER: mark} if self._signed else None
        self.answer(status, text, "application/json", more)

    def knows_token(self) -> bool:
        """Tells whether the request has the token, or is signed with it."""
        challenge, colon, signed = self.headers.get(proof.HEADER, "").partition(":")
        if not colon:
            return super().knows_token()
        if not self.challenges.use(challenge):
            return False
        self._signed = challenge
        return proof.is_signed(
            signed, self.token, f"{self.command} {self.path}", challenge, self._body
        )


def _news(page: PageSource, cursor: Cursor) -> tuple[Cursor, dict[str, Any]]:
    """Returns a page's news; those of a lab whose files cannot be read say why."""
    try:
        return page.news(cursor)
    except (RecordError, OSError) as error:
        return cursor, {"error": str(error)}
