"""Tests one_lab.py and its requests with labs that the test opens. `tests/http_api_test.py` has real
ones."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.registry import CollectorRegistry

from linklab.realtime import one_lab
from linklab.realtime.command_server import LiveServer
from linklab.realtime.command_server_test import TOKEN
from linklab.realtime.messages import RefusedError, StartLab
from linklab.realtime.one_lab import OneLab
from linklab.realtime.page_server_test import until
from linklab.runs.runner import RunError

WITH_TOKEN = {"X-Linklab": TOKEN}


class Opened:
    """An open lab that ends when it is stopped, or when a test says why."""

    exporter = CollectorRegistry()

    def __init__(self) -> None:
        self.why: str | None = None
        self.is_ready = True
        self.stopped = threading.Event()

    def status(self) -> dict[str, Any]:
        proxies = {"": "http://127.0.0.1:8080", "wifi": "http://127.0.0.1:8081"}
        lab = {"scenario": "wifi-gone", "seed": 7, "proxies": proxies, "origins": []}
        now = {"t_s": 1.0, "keeps_up": True, "links": {}}
        return {**lab, "ready": self.is_ready, "now": now}

    def run(self, _: Path) -> None:
        while not self.stopped.wait(0.01):
            if self.why is not None:
                raise RunError(self.why)

    def stop(self) -> None:
        self.stopped.set()


class Labs:
    """Opens labs: at once, never, or with an error."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hangs = False
        self.is_ready = True
        self.opened: list[Opened] = []
        self.wanted: list[StartLab] = []
        self.closed = 0

    @contextlib.contextmanager
    def open(self, wanted: StartLab, go_on: Callable[[], None]) -> Iterator[tuple[Any, Path]]:
        self.wanted.append(wanted)
        try:
            while self.hangs:
                go_on()
                time.sleep(0.01)
            if self.error is not None:
                raise self.error
            lab = Opened()
            lab.is_ready = self.is_ready
            self.opened.append(lab)
            yield lab, Path()
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

    @contextlib.contextmanager
    def starting(self) -> Iterator[list[Any]]:
        """Starts a lab beside the block. At its end the list holds what the server said."""
        said: list[Any] = []
        thread = threading.Thread(target=lambda: said.extend(self.start()))
        thread.start()
        yield said
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    labs, one = Labs(), OneLab()
    threading.Thread(target=one.run, args=(labs.open,), daemon=True).start()
    made = LiveServer(("127.0.0.1", 0), one, TOKEN, page=True)
    server = Server(made.address, labs)
    yield server
    server.ask("DELETE", "/lab")
    made.close()
    assert labs.closed == len(labs.wanted)


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
    with server.starting() as said:
        until(lambda: server.labs.wanted)
        assert server.ask("GET", "/lab")[1]["state"] == "starting"
        status, problem, _ = server.ask("PATCH", "/lab/links/wifi", {"down": "2 Mbit/s"})
        assert (status, problem["error"]) == (409, "the lab is starting")
        assert server.start()[0] == 409
        assert server.ask("DELETE", "/lab")[0] == 204
    assert (said[0], said[1]["error"]) == (409, "the lab was stopped while it started")
    server.labs.hangs = False
    assert server.start()[0] == 201


def test_a_lab_is_stopped_before_its_links_have_a_state(server: Server) -> None:
    server.labs.is_ready = False
    with server.starting() as said:
        until(lambda: server.labs.opened)
        assert server.ask("GET", "/lab")[1]["state"] == "starting"
        assert server.ask("DELETE", "/lab")[0] == 204
    assert (said[0], said[1]["error"]) == (409, "the lab was stopped while it started")


@pytest.mark.parametrize("why", ["no memory", None])
def test_a_lab_that_does_not_come_to_run_is_unavailable(
    server: Server, monkeypatch: pytest.MonkeyPatch, why: str | None
) -> None:
    """It ends by itself, or its time is over."""
    monkeypatch.setattr(one_lab, "START_S", 60.0 if why else 0.0)
    server.labs.is_ready = False
    with server.starting() as said:
        until(lambda: server.labs.opened)
        server.labs.opened[0].why = why
    words = f"the lab did not start: {why}" if why else "the lab did not start within 0 s"
    assert (said[0], said[1]["error"]) == (503, words)
    assert server.ask("GET", "/lab")[0] == 404


def test_the_end_of_a_first_lab_by_itself_is_the_end_of_the_server() -> None:
    labs, one = Labs(), OneLab(StartLab("x"))
    labs.error = ValueError("no scenario is 'x'")
    with pytest.raises(ValueError, match="no scenario"):
        one.run(labs.open)
    assert labs.closed == 1


def test_an_interrupt_ends_a_lab_that_starts_and_who_waits_for_it() -> None:
    labs, one = Labs(), OneLab()
    labs.error = KeyboardInterrupt()  # type: ignore[assignment]
    said: list[str] = []

    def start() -> None:
        with pytest.raises(RefusedError) as refused:
            one.start(StartLab("x"))
        said.append(str(refused.value))

    thread = threading.Thread(target=start)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        one.run(labs.open)
    thread.join()
    assert (labs.closed, said) == (1, ["the lab did not start: the server ends"])


def test_views_of_no_lab_say_so(server: Server) -> None:
    assert server.ask("GET", "/status")[1]["error"] == "there is no lab"
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    connection.request("GET", "/metrics")
    assert connection.getresponse().read() == b""
    connection.request("GET", "/news")
    answer = connection.getresponse()
    assert json.loads(answer.readline()[6:]) == {"error": "there is no lab"}
    connection.close()


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
            ValueError("--origin ftp://x/: no such URL; allowed: http or https"),
            422,
            {
                "error": "--origin ftp://x/: no such URL",
                "field": "origins",
                "allowed": "http or https",
            },
        ),
        (
            ValueError("no scenario is 'x'"),
            422,
            {"error": "no scenario is 'x'", "field": "scenario"},
        ),
        (RunError("the lab did not start"), 503, {"error": "the lab did not start"}),
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
