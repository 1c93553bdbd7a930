"""Tests one_lab.py and server.py with labs that are opened by the test. `tests/http_api_test.py` has
real ones."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from linklab.api.errors import LiveLabError, UsageError
from linklab.api.http.one_lab import OneLab
from linklab.api.http.operations import OPERATIONS
from linklab.api.http.server import serving
from linklab.api.live_lab import LabRequest
from linklab.realtime.token import ENVIRONMENT

TOKEN = "known-to-the-labs-account"
WITH_TOKEN = {"X-Linklab": TOKEN}


class Opened:
    """An open lab that ends when a test says so."""

    def __init__(self) -> None:
        self.why: str | None = None

    def status(self) -> dict[str, Any]:
        return {
            "scenario": "wifi-gone",
            "seed": 7,
            "proxies": {"": "http://127.0.0.1:8080", "wifi": "http://127.0.0.1:8081"},
            "origins": [],
            "now": None,
        }

    def why_ended(self) -> str | None:
        return self.why


class Labs:
    """Opens labs: at once, never, or with an error."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hangs = False
        self.opened: list[Opened] = []
        self.wanted: list[LabRequest] = []
        self.closed = 0

    @contextlib.contextmanager
    def open(self, wanted: LabRequest, _: object, go_on: Callable[[], None]) -> Iterator[Opened]:
        self.wanted.append(wanted)
        try:
            while self.hangs:
                go_on()
                time.sleep(0.01)
            if self.error is not None:
                raise self.error
            lab = Opened()
            self.opened.append(lab)
            yield lab
        finally:
            self.closed += 1


class Server:
    """A server on a free port."""

    def __init__(self, address: tuple[str, int], labs: Labs) -> None:
        self.address = address
        self.labs = labs

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] = WITH_TOKEN
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            text = answer.read()
        return answer.status, json.loads(text) if text else None, answer.headers

    def start(self) -> tuple[int, Any, http.client.HTTPMessage]:
        return self.ask("POST", "/lab", {"scenario": "wifi-gone"})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv(ENVIRONMENT, TOKEN)
    labs = Labs()
    one = OneLab(LabRequest(scenario=""), labs.open)  # type: ignore[arg-type]
    with serving(("127.0.0.1", 0), one) as running:
        yield Server(running.address, labs)
    assert labs.closed == len(labs.wanted)


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # It is not so yet.


def test_a_lab_is_started_shown_and_stopped(server: Server) -> None:
    status, lab, _ = server.ask("POST", "/lab", {"scenario": "ls", "seed": 7, "outside": True})
    assert (status, lab["state"], lab["seed"], lab["proxy_port"]) == (201, "running", 7, 8080)
    assert (server.labs.wanted[0].seed, server.labs.wanted[0].outside) == (7, True)
    assert server.ask("GET", "/lab", headers={})[1] == lab
    assert server.ask("DELETE", "/lab")[:2] == (204, None)
    assert server.labs.closed == 1
    status, problem, _ = server.ask("GET", "/lab")
    assert (status, problem) == (
        404,
        {"error": "there is no lab", "allowed": "POST /lab starts one"},
    )
    assert server.ask("DELETE", "/lab")[0] == 404
    assert server.start()[0] == 201


def test_a_second_lab_is_a_conflict(server: Server) -> None:
    assert server.start()[0] == 201
    status, problem, _ = server.start()
    assert (status, problem["error"]) == (409, "there is a lab already: it is running")
    assert len(server.labs.wanted) == 1


def test_of_many_that_start_a_lab_at_once_one_has_it(server: Server) -> None:
    said: list[int] = []
    threads = [threading.Thread(target=lambda: said.append(server.start()[0])) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(said) == [201] + [409] * 19
    assert len(server.labs.wanted) == 1


def test_a_lab_is_stopped_while_it_starts(server: Server) -> None:
    server.labs.hangs = True
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(server.start()))
    thread.start()
    until(lambda: server.labs.wanted)
    assert server.ask("GET", "/lab")[1]["state"] == "starting"
    status, problem, _ = server.ask("PATCH", "/lab/links/wifi", {"down": "2 Mbit/s"})
    assert (status, problem["error"]) == (409, "the lab is starting")
    assert server.start()[0] == 409
    assert server.ask("DELETE", "/lab")[0] == 204
    thread.join()
    assert (said[0][0], said[0][1]["error"]) == (409, "the lab was stopped while it started")
    server.labs.hangs = False
    assert server.start()[0] == 201


def test_the_server_s_end_ends_a_lab_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, TOKEN)
    labs = Labs()
    labs.hangs = True
    one = OneLab(LabRequest(scenario=""), labs.open)  # type: ignore[arg-type]
    with serving(("127.0.0.1", 0), one) as running:
        server = Server(running.address, labs)
        thread = threading.Thread(target=lambda: contextlib.suppress(OSError) and server.start())
        thread.start()
        until(lambda: labs.wanted)
    assert labs.closed == 1
    thread.join()


def test_a_lab_that_ends_by_itself_says_why(server: Server) -> None:
    server.start()
    server.labs.opened[0].why = "every run has failed"
    until(lambda: server.ask("GET", "/lab")[0] == 404)
    problem = server.ask("GET", "/lab")[1]
    assert problem["error"] == "there is no lab: it ended by itself: every run has failed"
    assert server.start()[0] == 201


@pytest.mark.parametrize(
    ("error", "status", "problem"),
    [
        (
            UsageError("--origin ftp://x/: no such URL; allowed: http or https"),
            422,
            {
                "error": "--origin ftp://x/: no such URL",
                "field": "origins",
                "allowed": "http or https",
            },
        ),
        (
            UsageError("no scenario is 'x'"),
            422,
            {"error": "no scenario is 'x'", "field": "scenario"},
        ),
        (LiveLabError("the lab did not start"), 503, {"error": "the lab did not start"}),
        (OSError("the disk is full"), 503, {"error": "the disk is full"}),
    ],
)
def test_a_lab_that_cannot_be_is_refused_in_words(
    server: Server, error: Exception, status: int, problem: dict[str, str]
) -> None:
    server.labs.error = error
    assert server.start()[:2] == (status, problem)
    assert server.ask("GET", "/lab")[0] == 404


def test_scenarios_are_listed(server: Server) -> None:
    assert "wifi-gone" in server.ask("GET", "/scenarios", headers={})[1]["scenarios"]


# --- Attacks.

CHANGES = [(one.method, one.path.format(name="wifi")) for one in OPERATIONS if one.changes]


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Linklab": ""},
        {"X-Linklab": TOKEN[:-1]},
        {"X-Linklab": "guessed-by-somebody-else"},
        {**WITH_TOKEN, "Origin": "https://evil.example"},
        {**WITH_TOKEN, "Origin": "null"},
        {**WITH_TOKEN, "Sec-Fetch-Site": "cross-site"},
        {**WITH_TOKEN, "Host": "evil.example"},
        {**WITH_TOKEN, "Host": "127.0.0.1.evil.example:9465"},
        {**WITH_TOKEN, "Host": ""},
    ],
)
def test_who_may_not_change_a_lab_changes_nothing(
    server: Server, method: str, path: str, headers: dict[str, str]
) -> None:
    body = {"scenario": "ls"} if method == "POST" else {"down": "2 Mbit/s"}
    status, problem, answer = server.ask(method, path, body, headers)
    assert (status, set(problem)) in ((403, {"error"}), (403, {"error", "field", "allowed"}))
    assert not server.labs.wanted
    assert answer["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize("host", ["172.17.0.1:32768", "[2001:db8::1]:9465", "localhost:1"])
def test_a_container_is_reached_by_addresses_that_it_does_not_know(
    server: Server, host: str
) -> None:
    assert server.ask("GET", "/scenarios", headers={"Host": host})[0] == 200
    assert server.ask("DELETE", "/lab", headers={**WITH_TOKEN, "Host": host})[0] == 404
    foreign = {**WITH_TOKEN, "Host": host, "Origin": "http://172.17.0.2"}
    assert server.ask("DELETE", "/lab", headers=foreign)[0] == 403


@pytest.mark.parametrize("path", ["/lab", "/scenarios", "/openapi.json", "/nothing"])
def test_a_rebound_name_reads_nothing(server: Server, path: str) -> None:
    status, problem, _ = server.ask("GET", path, headers={"Host": "evil.example"})
    assert (status, problem["field"]) == (403, "Host")


def test_a_preflight_of_another_site_is_allowed_nothing(server: Server) -> None:
    status, _, answer = server.ask("OPTIONS", "/lab", headers={"Origin": "https://evil.example"})
    assert status == 405
    assert not [name for name in answer if name.startswith("Access-Control")]


def test_other_methods_and_paths_are_refused_in_json(server: Server) -> None:
    for method in ("PUT", "TRACE", "BREW", "HEAD"):
        status, _, answer = server.ask(method, "/scenarios")
        assert (status, answer["Allow"]) == (405, "GET")
    status, problem, _ = server.ask("GET", "/lab/../etc/passwd")
    assert (status, problem["allowed"].split(", ")[0]) == (404, "/scenarios")
    assert server.ask("BREW", "/nothing")[0] == 404


def test_a_body_of_10_mb_is_not_read(server: Server) -> None:
    with socket.create_connection(server.address, timeout=30) as peer:
        peer.sendall(
            f"POST /lab HTTP/1.1\r\nHost: localhost\r\nX-Linklab: {TOKEN}\r\n"
            "Content-Length: 10000000\r\n\r\n".encode()
        )
        assert b" 413 " in peer.recv(4096)
    assert server.ask("POST", "/lab", b"")[0] == 400
    assert not server.labs.wanted


@pytest.mark.parametrize("length", ["", "x", "-1"])
def test_a_body_without_a_length_is_refused(server: Server, length: str) -> None:
    with socket.create_connection(server.address, timeout=30) as peer:
        given = f"Content-Length: {length}\r\n" if length else "Transfer-Encoding: chunked\r\n"
        peer.sendall(
            f"POST /lab HTTP/1.1\r\nHost: localhost\r\nX-Linklab: {TOKEN}\r\n{given}\r\n".encode()
        )
        assert peer.recv(4096).split()[1] in (b"411", b"413")


@pytest.mark.parametrize(
    "asked", [b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_what_is_no_request_is_refused_in_json(server: Server, asked: bytes) -> None:
    with socket.create_connection(server.address, timeout=30) as peer:
        peer.sendall(asked)
        said = peer.makefile("rb").read()
    assert b'"error"' in said
    assert server.ask("GET", "/scenarios")[0] == 200
