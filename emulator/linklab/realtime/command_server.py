"""Serves the HTTP API of labs, with metrics, status and page.

Anyone who reaches the address can read metrics, status and page. What changes the lab needs its token
(`token.py`). `request_guard.py` has the rules against pages of others, `bounded_server.py` the limits.

It is Python's http.server, because the lab reads files in threads anyway. An asynchronous library
(aiohttp, Starlette with Uvicorn) would bring six to nine packages, a loop beside these threads, and
the same limits to write.
"""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

import linklab
from linklab.realtime import messages, openapi, operations, page_files, proof, request_guard
from linklab.realtime import token as livetoken
from linklab.realtime.address import to_text
from linklab.realtime.answering import AnsweringHandler
from linklab.realtime.bounded_server import BoundedServer
from linklab.realtime.messages import RefusedError
from linklab.realtime.one_lab import OneLab
from linklab.realtime.operations import Operation
from linklab.realtime.page_files import PageFile
from linklab.realtime.session import LiveLab
from linklab.realtime.view import Cursor
from linklab.scenario import names_in

DOCUMENT = "/openapi.json"
"""The path of the OpenAPI document."""

METRICS = "/metrics"

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


class LiveServer:
    """Serves the HTTP API, `/metrics`, `/status` and perhaps a page on `address` until `close`."""

    def __init__(
        self, address: tuple[str, int], labs: OneLab, token: str, *, page: bool = False
    ) -> None:
        class Handler(_Handler):
            pass

        Handler.labs, Handler.token, Handler.page = labs, token, page
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
        return f"http://{to_text(self.address)}"

    def close(self) -> None:
        self._server.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextlib.contextmanager
def serving(
    address: tuple[str, int], labs: OneLab, *, page: bool = False
) -> Iterator[tuple[LiveServer, str, str]]:
    """Runs a LiveServer during the block. Yields it, its token, and where to find the token.

    Raises TokenError if the environment has an invalid token.
    """
    token = livetoken.chosen()
    with (
        contextlib.closing(LiveServer(address, labs, token, page=page)) as server,
        livetoken.kept(server.address, token) as path,
    ):
        yield server, token, livetoken.whereabouts(path, token)


class _Handler(AnsweringHandler):
    labs: OneLab
    page: bool
    streams: threading.BoundedSemaphore

    def _serve(self) -> None:
        path = self.path.partition("?")[0]
        of_path, variables = operations.found(path)
        views = self._views()
        allowed = ["GET"] if path in views else list(of_path)
        try:
            if path != METRICS:  # Prometheus may have a name of its own for the lab.
                self.require_host()
            if not allowed:
                known = dict.fromkeys((*(one.path for one in operations.OPERATIONS), *views))
                paths = ", ".join(one for one in known if not one.startswith("/page/"))
                raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no {path}", None, paths)
            if self.command not in allowed:
                self._refuse_method(allowed)
            elif path in views:
                views[path]()
            else:
                self._execute(of_path[self.command], variables)
        except RefusedError as error:
            self.refuse(error)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = do_OPTIONS = do_TRACE = _serve

    def _refuse_method(self, allowed: list[str]) -> None:
        methods = ", ".join(allowed)
        why = f"{self.command} is not for {self.path}"
        error = RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, why, None, methods)
        self.refuse(error, {"Allow": methods})

    def _execute(self, operation: Operation, variables: dict[str, str]) -> None:
        """Executes an operation, and answers. The answer to a signed request is signed."""
        body = b"" if operation.asks is None else self.body()
        challenge = ""
        if operation.changes:
            self.require_own_page()
            challenge = self.require_token(body)
            self.server.keep(self.connection)  # A lab takes its time to start and to end.
        try:
            with _reading():
                said = self._done(operation, body, variables)
        except RefusedError as error:
            self.answer_json(error.status, error.problem, challenge)
        else:
            self.answer_json(operation.success, said, challenge)

    def _done(self, operation: Operation, body: bytes, variables: dict[str, str]) -> Any:
        """Executes an operation, and returns what it answers. Raises RefusedError."""
        asked: Any = operation.asks and messages.decoded(body, operation.asks)
        match operation.name:
            case "list_scenarios":
                return messages.ScenarioNames(names_in())
            case "start_lab":
                return self.labs.start(asked)
            case "show_lab":
                return self.labs.show()
            case "change_link":
                return self.labs.change(variables["name"], asked)
            case "change_lab":
                return self.labs.change_whole(asked.command())
            case "stop_lab":
                return self.labs.stop()
        raise AssertionError(operation.name)

    def _views(self) -> dict[str, Callable[[], None]]:
        """Returns what answers a GET of a path that is no operation of the API."""
        found: dict[str, Callable[[], None]] = {
            DOCUMENT: self._document,
            METRICS: self._metrics,
            "/status": self._status,
            proof.PATH: self._challenge,
        }
        if not self.page:
            return {"/": self._status, **found}
        files = page_files.files().items()
        found |= {path: functools.partial(self._file, file) for path, file in files}
        return {**found, "/news": self._news, "/scenario": self._scenario}

    def _document(self) -> None:
        self.answer_json(HTTPStatus.OK, openapi.document(linklab.__version__))

    def _challenge(self) -> None:
        self.answer_json(HTTPStatus.OK, {"challenge": self.challenges.new()})

    def _file(self, file: PageFile) -> None:
        self.answer(HTTPStatus.OK, file.content, file.kind, request_guard.PAGE_HEADERS)

    def _status(self) -> None:
        lab = self.labs.lab
        with _reading():
            is_sampled = self.path.endswith("?sampled")
            status = _sampled_status(lab) if is_sampled else lab.status()
        self.answer_json(HTTPStatus.OK, status)

    def _metrics(self) -> None:
        """Answers with the lab's metrics. Without a lab there are none."""
        encode, kind = choose_encoder(self.headers.get("Accept", ""))
        metrics: Collector = CollectorRegistry()
        with contextlib.suppress(RefusedError):
            metrics = self.labs.lab.exporter
        with _reading():
            content = encode(metrics)
        self.answer(HTTPStatus.OK, content, kind)

    def _scenario(self) -> None:
        """Answers with a scenario of what was done by hand, by its name and its time 0 in the run."""
        self.require_own_page()
        asked = dict(parse_qsl(self.path.partition("?")[2]))
        try:
            text = self.labs.lab.saved(asked.get("name", ""), asked.get("from", "").strip())
        except (OSError, ValueError) as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from None
        self.answer(HTTPStatus.OK, text.encode(), "application/yaml; charset=utf-8")

    def _news(self) -> None:
        """Sends news to a page until it goes away or no longer reads (server-sent events)."""
        self.require_own_page()
        if not self.streams.acquire(blocking=False):
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_STREAMS} pages are open; close one"
            )
        try:
            self.server.keep(self.connection)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BUFFER_BYTES)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_headers(request_guard.HEADERS)
            self.end_headers()
            reader = _Reader(self.labs)
            while True:
                self.wfile.write(b"data: " + json.dumps(reader.news()).encode() + b"\n\n")
                if self.server.closing.wait(NEWS_S):
                    return
        finally:
            self.streams.release()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers what is no request, or has an unknown method."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED and hasattr(self, "headers"):
            return self._serve()
        return self.refuse(RefusedError(HTTPStatus(code), message or HTTPStatus(code).phrase))


class _Reader:
    """A reader of the page, and what it has of the lab."""

    def __init__(self, labs: OneLab) -> None:
        self._labs = labs
        self._lab: LiveLab | None = None
        self._cursor = Cursor()

    def news(self) -> dict[str, Any]:
        """Returns what the reader does not have yet, or says why there is nothing."""
        try:
            lab = self._labs.lab
            if lab is not self._lab:
                self._lab, self._cursor = lab, Cursor()
            self._cursor, news = lab.exporter.news(self._cursor)
            return {**news, "status": lab.status()}
        except (RefusedError, OSError) as error:
            return {"error": str(error)}


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Raises RefusedError if the lab's files cannot be read."""
    try:
        yield
    except OSError as error:
        raise RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from None


def _sampled_status(lab: LiveLab) -> dict[str, Any]:
    """Returns a status whose counters were sampled after the request. Raises RefusedError."""
    seen: set[float] = set()
    deadline_s = time.monotonic() + SAMPLE_PATIENCE_S
    while time.monotonic() < deadline_s:
        status = lab.status()
        seen.add((status["now"] or {}).get("sampled_s", 0.0))
        if len(seen) > _NEWER_SAMPLES:
            return status
        time.sleep(SAMPLE_POLL_S)
    raise RefusedError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"no sample of the links within {SAMPLE_PATIENCE_S:.0f} s",
        allowed="a running lab whose scenario has a shorter sample",
    )
