"""Tests the HTTP API of `linklab serve` and `live`, with real labs, by hand and by schemathesis."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import TEST_ALL, command, environment, is_in_part, ran, until
from linklab.core.scratch import find as leftovers
from linklab.realtime.token import ENVIRONMENT
from python_api_test import SMALL
from through_the_lab import fetched, needs_outside, served

pytestmark = [
    pytest.mark.one_at_a_time,
    needs_outside,
]

SIZE = 1_000_000
TOKEN = "known-to-the-labs-account"

SCHEMATHESIS = """\
[checks]
# 422: a word that is no quantity, a link that cannot become so.
positive_data_acceptance.expected-statuses = ["2xx", "403", "404", "409", "422"]
# 409: there is a lab already. 413: longer than any request.
negative_data_rejection.expected-statuses = ["400", "403", "404", "409", "411", "413", "422"]
"""


class Serving:
    """Runs `linklab serve` and talks to it."""

    def __init__(self, work: Path, process: subprocess.Popen[Any], url: str) -> None:
        self.work = work
        self.process = process
        self.url = url

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Sends a request with the token. Returns the status and the content."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=240)
        with contextlib.closing(connection):
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"X-Linklab": TOKEN})
            answer = connection.getresponse()
            text = answer.read()
        return answer.status, json.loads(text) if text else None

    def tested(self, tries: int, *words: str) -> str:
        """Runs schemathesis against the server, with so many random requests of each kind, in `make
        test` an eighth. Returns what it said. It fails if it finds something."""
        count = tries if TEST_ALL else max(1, tries // 8)
        (self.work / "schemathesis.toml").write_text(SCHEMATHESIS)
        done = ran(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
                *("run", f"{self.url}/openapi.json", "-H", f"X-Linklab: {TOKEN}", "--seed", "1"),
                *("-n", str(count)),
                *("--phases", "examples,coverage,fuzzing", "--request-timeout", "240", *words),
            ],
            cwd=self.work,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
        return done.stdout

    def family(self) -> list[psutil.Process]:
        """Returns the processes that the server has started."""
        return psutil.Process(self.process.pid).children(recursive=True)


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Serving]:
    """Starts a server, and ends it as Ctrl-C does. Nothing may be left of it."""
    words: tuple[str, ...] = getattr(request, "param", ("serve",))
    (tmp_path / "small.yaml").write_text(SMALL)
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            command(*words, "--listen", "127.0.0.1:0"),
            cwd=tmp_path,
            env={**environment(), ENVIRONMENT: TOKEN},
            stderr=err,
        )

    def urls() -> list[str]:
        return re.findall(r"(?:API|metrics): (http://[\d.:]+)", (tmp_path / "err").read_text())

    until(urls, (tmp_path / "err").read_text, process=process)
    yield Serving(tmp_path, process, urls()[0])
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (130, -signal.SIGKILL)


def test_a_program_downloads_over_links_that_it_changes(server: Serving) -> None:
    (server.work / "served").mkdir()
    (server.work / "served" / "file").write_bytes(os.urandom(SIZE))
    with served(server.work / "served") as url:
        status, lab = server.ask(
            "POST", "/lab", {"scenario": "small.yaml", "origins": [f"{url}file"], "seed": 3}
        )
        assert (status, lab["state"], lab["seed"]) == (201, "running", 3), lab
        assert {name: link["down"] for name, link in lab["links"].items()} == {
            "wifi": "60 Mbit/s",
            "lte": "40 Mbit/s",
        }
        proxy = f"http://127.0.0.1:{lab['proxy_port']}"
        of_lte = f"http://127.0.0.1:{lab['links']['lte']['proxy_port']}"
        content = fetched(lab["origins"][0], proxy)
        assert content is not None
        assert len(content) == SIZE
        status, link = server.ask("PATCH", "/lab/links/lte", {"down": "2 Mbit/s", "rtt": "60 ms"})
        assert (status, link["down"], link["rtt"]) == (200, "2 Mbit/s", "60 ms")
        begun = time.monotonic()
        assert fetched(lab["origins"][0], of_lte) == content
        assert time.monotonic() - begun > SIZE * 8 / 2e6
        assert server.ask("PATCH", "/lab/links/lte", {"carrier": "down"})[1]["carrier"] == "down"
        status, lab = server.ask("GET", "/lab")
        assert (lab["links"]["lte"]["carrier"], lab["links"]["wifi"]["carrier"]) == ("down", "up")
        assert lab["time_s"] > 0
        impaired: dict[str, Any] = {"impair_up": {"delay": "30 ms", "in_order": False}}
        status, link = server.ask("PATCH", "/lab/links/lte", impaired)
        assert (status, link["impair_up"]) == (200, {"delay": "30 ms", "in_order": "false"})
        status, link = server.ask("PATCH", "/lab/links/lte", {"restore": True})
        assert (link["impair_down"], link["impair_up"]) == ({}, {})
        assert (link["carrier"], link["down"], link["by_hand"]) == ("up", "40 Mbit/s", [])
    family = server.family()
    assert server.ask("DELETE", "/lab") == (204, None)
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert server.ask("GET", "/lab")[0] == 404


@pytest.mark.parametrize("server", [("live", "small.yaml", "-a", "alg3")], indirect=True)
def test_a_live_lab_has_the_same_api_and_makes_room_for_others(server: Serving) -> None:
    until(lambda: server.ask("GET", "/lab")[1]["state"] == "running")
    assert server.ask("POST", "/lab", {"scenario": "small.yaml"})[0] == 409
    done = server.ask("PATCH", "/lab", {"paused": True})
    assert done == (200, {"done": "no further download begins", "stays": []})
    assert "patch" in server.ask("GET", "/openapi.json")[1]["paths"]["/lab"]
    assert server.ask("DELETE", "/lab") == (204, None)
    assert server.ask("GET", "/status")[0] == 404
    status, lab = server.ask("POST", "/lab", {"scenario": "small.yaml", "seed": 3})
    assert (status, lab["seed"], lab["proxy_port"] is None) == (201, 3, False), lab
    for change, down in (("fade: 50 %", "30"), ("cap: 3 Mbit/s", "3"), ("cross: 1 Mbit/s", "2")):
        key, _, value = change.partition(": ")
        status, link = server.ask("PATCH", "/lab/links/wifi", {key: value})
        assert (status, link["down"]) == (200, f"{down} Mbit/s"), link


NO_LABS: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"scenario": "wifi-gon"}, "scenario", "called 'wifi-gon' (did you mean 'wifi-gone'?)"),
    ({"scenario": "/nowhere/x.yaml"}, "scenario", "/nowhere/x.yaml: there is no such scenario"),
    ({"scenario": "ls", "origins": ["ftp://x/"]}, "origins", "no such URL"),
    ({"scenario": "ls", "origins": ["http://127.0.0.1:1/"]}, "origins", "does not answer"),
    # Reading a pipe that nobody writes to would take for ever.
    ({"scenario": "pipe.yaml"}, "scenario", ""),
    # A scenario's name is no option.
    *(({"scenario": name}, "scenario", "") for name in ("--open", "--record=made.yaml", "a\0b")),
)

REFUSED: tuple[tuple[str, str, dict[str, Any], int, str], ...] = (
    ("PATCH", "/lab/links/wfi", {"down": "1 Mbit/s"}, 404, "called 'wfi' (did you mean 'wifi'?)"),
    ("PATCH", "/lab/links/wifi", {"down": "1"}, 422, "'1' has no unit"),
    ("PATCH", "/lab/links/wifi", {"jitter": "200 ms"}, 422, "does not fit a round trip"),
    ("PATCH", "/lab/links/wifi", {"impair_up": {"loss": "1"}}, 422, "'1' has no unit"),
    ("PATCH", "/lab/links/wifi", {"impair_up": {}}, 422, "impair_up: impairs nothing"),
    ("PATCH", "/lab/links/wifi", {}, 422, "changes nothing"),
    ("POST", "/lab", {"scenario": "ls"}, 409, "there is a lab already: it is running"),
)


def test_what_cannot_be_is_refused_in_words(server: Serving) -> None:
    """First labs that cannot be, then what a running lab refuses."""
    os.mkfifo(server.work / "pipe.yaml")
    for body, field, problem in NO_LABS:
        status, said = server.ask("POST", "/lab", body)
        assert (status, said["field"], problem in said["error"]) == (422, field, True), said
    assert not (server.work / "made.yaml").exists()
    assert server.ask("POST", "/lab", {"scenario": "small.yaml"})[0] == 201
    for method, path, body, status, problem in REFUSED:
        refused = server.ask(method, path, body)
        assert (refused[0], problem in refused[1]["error"]) == (status, True), refused


def test_schemathesis_finds_nothing_in_a_running_lab(server: Serving) -> None:
    assert server.ask("POST", "/lab", {"scenario": "small.yaml"})[0] == 201
    said = server.tested(20, "--include-method", "GET", "--include-method", "PATCH")
    assert "Selected: 4/6" in said
    assert server.ask("GET", "/lab")[1]["state"] == "running"


def test_schemathesis_finds_nothing_in_starting_and_stopping(server: Serving) -> None:
    said = server.tested(5, "--include-path", "/lab")
    assert "Selected: 4/6" in said


ENDS = [
    (end, is_running)
    for row, end in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
    for column, is_running in enumerate((True, False))
    if is_in_part(row, column, 2)
]


@pytest.mark.parametrize(("end", "is_running"), ENDS)
def test_the_end_of_the_server_leaves_nothing(
    server: Serving, end: signal.Signals, *, is_running: bool
) -> None:
    """The lab is running, or starts just then."""

    def start() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            server.ask("POST", "/lab", {"scenario": "small.yaml"})

    thread = threading.Thread(target=start)
    thread.start()
    if is_running:
        thread.join()
        assert server.ask("GET", "/lab")[1]["state"] == "running"
    until(server.family)
    family = server.family()
    pids = {one.pid for one in family}
    server.process.send_signal(end)
    assert server.process.wait(timeout=60) == (130 if end != signal.SIGKILL else -end)
    assert psutil.wait_procs(family, timeout=30)[1] == []
    thread.join()
    assert not [one for one in leftovers() if any(f"-{pid}-" in one.name for pid in pids)]


@pytest.fixture
def silent() -> Iterator[str]:
    """Yields the URL of a server that does not answer: its queue of connections is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


@pytest.mark.parametrize("by", ["DELETE", "SIGTERM"])
def test_a_start_that_waits_is_stopped(server: Serving, silent: str, by: str) -> None:
    """Twenty origins that do not answer take 100 s."""
    body: dict[str, Any] = {"scenario": "small.yaml", "origins": [silent] * 20}
    said: list[Any] = []

    def start() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            said.append(server.ask("POST", "/lab", body))

    thread = threading.Thread(target=start)
    thread.start()
    until(lambda: server.ask("GET", "/lab")[0] == 200)
    time.sleep(1)  # Now it waits.
    if by == "DELETE":
        answered: list[int] = []
        stopping = threading.Thread(target=lambda: answered.append(server.ask("DELETE", "/lab")[0]))
        stopping.start()
        stopping.join(30)
        assert answered == [204]
        thread.join(30)
        assert said[0][0] == 409, said
    else:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 130
        thread.join(30)
    assert not thread.is_alive()
