"""Serves the HTTP API, with the rules of the live lab's own server (`realtime/answering.py`)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

import linklab
from linklab.api.http import openapi, operations
from linklab.api.http.one_lab import OneLab
from linklab.api.http.operations import Operation
from linklab.realtime import messages, request_guard
from linklab.realtime import token as livetoken
from linklab.realtime.address import to_text
from linklab.realtime.answering import AnsweringHandler, BodyError
from linklab.realtime.bounded_server import BoundedServer
from linklab.realtime.messages import Problem, RefusedError
from linklab.scenario import names_in

DOCUMENT = "/openapi.json"
"""The path of the OpenAPI document."""


@dataclass(frozen=True)
class Serving:
    """A server that runs: its address, and where its token is."""

    address: tuple[str, int]
    token: str


@contextlib.contextmanager
def serving(address: tuple[str, int], labs: OneLab) -> Iterator[Serving]:
    """Serves the API during the block. Raises OSError if it cannot listen, and TokenError if the
    environment has an invalid token."""
    token = livetoken.chosen()

    class Handler(_Handler):
        pass

    Handler.labs, Handler.token = labs, token
    try:
        server = BoundedServer(address, Handler)
    except OSError as error:
        raise OSError(f"cannot listen on {to_text(address)}: {error.strerror}") from None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    with contextlib.closing(labs), livetoken.kept((address[0], server.server_port), token) as path:
        thread.start()
        try:
            yield Serving((address[0], server.server_port), livetoken.whereabouts(path, token))
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class _Handler(AnsweringHandler):
    labs: OneLab

    def _serve(self) -> None:
        """Answers any request."""
        path = self.path.partition("?")[0]
        allowed, variables = operations.found(path)
        operation = allowed.get(self.command)
        try:
            self._require_host()
            if path == DOCUMENT and self.command == "GET":
                self.answer_json(HTTPStatus.OK, openapi.document(linklab.__version__))
            elif operation is not None:
                self._require_right(operation)
                self._answer_with(operation, self._executed(operation, variables))
            elif path == DOCUMENT or allowed:
                self._refuse_method(["GET"] if path == DOCUMENT else list(allowed))
            else:
                paths = ", ".join(dict.fromkeys(one.path for one in operations.OPERATIONS))
                raise RefusedError(
                    HTTPStatus.NOT_FOUND, f"there is no {path}", None, f"{paths}, {DOCUMENT}"
                )
        except BodyError as error:
            self._answer_problem(error.status, Problem(str(error)))
        except RefusedError as error:
            self._answer_problem(error.status, error.problem)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = do_OPTIONS = do_TRACE = _serve

    def strange_host(self) -> str | None:
        """Returns why the request's host is not this server's, or None."""
        return None if request_guard.host_is_address(self.headers) else super().strange_host()

    def _require_host(self) -> None:
        strange = self.strange_host()
        if strange is not None:
            raise RefusedError(HTTPStatus.FORBIDDEN, strange, "Host", "localhost or an IP address")

    def _require_right(self, operation: Operation) -> None:
        obstacle = self.obstacle() if operation.changes else None
        if obstacle is not None:
            raise RefusedError(HTTPStatus.FORBIDDEN, obstacle)

    def _executed(self, operation: Operation, variables: dict[str, str]) -> Any:
        """Executes an operation, and returns what it answers."""
        asked: Any = None
        if operation.asks is not None:
            asked = messages.decoded(self.body(), operation.asks)
        self.server.keep(self.connection)  # A lab takes its time to start and to end.
        match operation.name:
            case "list_scenarios":
                return messages.ScenarioNames(names_in())
            case "start_lab":
                return self.labs.start(asked)
            case "show_lab":
                return self.labs.show()
            case "change_link":
                return self.labs.change(variables["name"], asked)
            case "stop_lab":
                return self.labs.stop()
        raise AssertionError(operation.name)

    def _answer_with(self, operation: Operation, said: Any) -> None:
        if said is None:
            self.answer(operation.success, b"", None)
        else:
            self.answer_json(operation.success, msgspec.to_builtins(said))

    def _answer_problem(
        self, status: HTTPStatus, problem: Problem, more: dict[str, str] | None = None
    ) -> None:
        self.answer_json(status, msgspec.to_builtins(problem), more)

    def _refuse_method(self, allowed: list[str]) -> None:
        problem = Problem(f"{self.command} is not for {self.path}", None, ", ".join(allowed))
        more = {"Allow": ", ".join(allowed)}
        self._answer_problem(HTTPStatus.METHOD_NOT_ALLOWED, problem, more)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers what is no request, or has an unknown method."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED and hasattr(self, "headers"):
            return self._serve()
        return self._answer_problem(HTTPStatus(code), Problem(message or HTTPStatus(code).phrase))
