"""Tests of the page's part of command_server.py: its files, its stream, and attacks on both."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from linklab.realtime import bounded_server, command_server, page_files
from linklab.realtime.bounded_server import MOST_CONNECTIONS
from linklab.realtime.command_server import MOST_STREAMS
from linklab.realtime.command_server_test import STATUS, TOKEN
from linklab.realtime.command_server_test import Lab as CommandedLab

LINK = "/lab/links/wifi"


class Lab(CommandedLab):
    """A lab with a page."""

    def __init__(self) -> None:
        super().__init__(page=True)

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.server.address, timeout=30)

    def stream(self) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self.connection()
        connection.request("GET", "/news")
        return connection, connection.getresponse()

    def raw(self, content: bytes = b"") -> socket.socket:
        opened = socket.create_connection(self.server.address, timeout=30)
        opened.sendall(content)
        return opened


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(command_server, "NEWS_S", 0.02)
    made = Lab()
    yield made
    made.server.close()


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # It is not so yet.


def served(lab: Lab) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return lab.ask("GET", "/status")[0].status == 200
    return False


def others(threads: list[threading.Thread]) -> int:
    """Returns how many threads run besides these. Some of these may be of an earlier test, and end."""
    return len(set(threading.enumerate()) - set(threads))


def test_the_page_and_its_files(lab: Lab) -> None:
    answer, content = lab.ask("GET", "/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    named = {part.split(b'"')[0].decode() for part in content.split(b'="/')[1:]}
    assert {"page/main.js", "page/vendor/uPlot.iife.min.js", "page/page.css"} <= named
    for name in named:
        assert lab.ask("GET", f"/{name}")[0].status == 200, name
    assert b"//" not in content.replace(b"<!doctype", b"")
    assert lab.ask("GET", "/page/vendored.json")[0].status == 404
    assert lab.ask("GET", "/page/../command_server.py")[0].status == 404
    assert json.loads(lab.ask("GET", "/status")[1])["seed"] == 3


def test_every_file_runs_without_inline_code_and_asks_nobody_else(lab: Lab) -> None:
    for path in page_files.files():
        answer, _ = lab.ask("GET", path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Access-Control-Allow-Origin"] is None


def test_a_sampled_status_is_newer_than_the_request(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample after the request may have been taken before it, so the one after that counts."""
    monkeypatch.setattr(command_server, "SAMPLE_POLL_S", 0.0)
    times = iter([3.0, 3.0, 3.5, 3.5, 4.0])
    lab.status = lambda: {**STATUS, "now": {"sampled_s": next(times)}}
    answer, content = lab.ask("GET", "/status?sampled")
    assert (answer.status, json.loads(content)["now"]) == (200, {"sampled_s": 4.0})
    monkeypatch.setattr(command_server, "SAMPLE_PATIENCE_S", 0.05)
    lab.status = lambda: {**STATUS, "now": None}
    answer, content = lab.ask("GET", "/status?sampled")
    assert answer.status == 503
    assert b"no sample of the links within" in content


def test_a_stream_goes_on_from_where_it_is(lab: Lab) -> None:
    connection, answer = lab.stream()
    assert answer.headers["Content-Type"] == "text/event-stream"
    said = [answer.readline() for _ in range(6)]
    assert [json.loads(line[6:])["had"] for line in said[::2]] == [0, 1, 2]
    assert json.loads(said[0][6:])["status"]["seed"] == 3
    connection.close()


def test_a_stream_says_what_is_wrong_with_the_labs_files(lab: Lab) -> None:
    lab.exporter.broken = True
    connection, answer = lab.stream()
    assert json.loads(answer.readline()[6:])["error"] == "links.jsonl:3: nonsense"
    connection.close()


def test_a_scenario_is_saved_by_its_name(lab: Lab) -> None:
    answer, content = lab.ask("GET", "/scenario?name=by-me")
    assert (answer.status, content) == (200, b"name: by-me\n# \n")
    assert lab.ask("GET", "/scenario?name=by-me&from=110+s")[1] == b"name: by-me\n# 110 s\n"
    answer, content = lab.ask("GET", "/scenario")
    assert (answer.status, json.loads(content)) == (400, {"error": "'' is no name"})


# --- Attacks.


def test_a_token_in_a_url_changes_nothing(lab: Lab) -> None:
    for path in (f"{LINK}?token={TOKEN}", f"{LINK}#token={TOKEN}"):
        assert lab.change(path, {"carrier": "down"})[0] in (403, 404)
    assert not lab.obeyed


PAGE = ("/", "/page/main.js", "/news", "/scenario?name=x", "/nothing")
API = ("/status", "/lab", "/scenarios", "/openapi.json", "/challenge")


@pytest.mark.parametrize("path", [*PAGE, *API])
def test_a_rebound_name_reads_nothing(lab: Lab, path: str) -> None:
    answer, text = lab.ask("GET", path, Host="rebound.example")
    assert (answer.status, json.loads(text)["field"]) == (403, "Host")


@pytest.mark.parametrize("path", ["/news", "/scenario?name=x"])
def test_a_page_of_another_site_opens_no_stream(lab: Lab, path: str) -> None:
    assert lab.ask("GET", path, Origin="https://evil.example")[0].status == 403
    assert lab.ask("GET", path, Sec_Fetch_Site="cross-site")[0].status == 403


def test_a_body_of_10_megabytes_is_refused_and_not_read(lab: Lab) -> None:
    opened = lab.raw(
        f"PATCH {LINK} HTTP/1.1\r\nHost: localhost\r\nX-Linklab: {TOKEN}\r\n"
        "Content-Length: 10000000\r\n\r\n".encode()
    )
    assert b" 413 " in opened.recv(4096)
    opened.close()
    with contextlib.suppress(ConnectionError):
        lab.ask("PATCH", LINK, "x" * 10_000_000, X_Linklab=TOKEN)
    assert not lab.obeyed
    assert served(lab)


def test_many_connections_have_few_threads_and_the_lab_answers_afterwards(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_server, "PATIENCE_S", 0.5)
    before = threading.enumerate()
    with contextlib.ExitStack() as opened:
        for _ in range(4 * MOST_CONNECTIONS):
            with contextlib.suppress(OSError):
                opened.enter_context(lab.raw(b"GET /status HTTP/1.1\r\n"))
            assert others(before) <= MOST_CONNECTIONS
        until(lambda: served(lab))
    until(lambda: not others(before))


def test_a_request_that_comes_byte_by_byte_ends(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "PATIENCE_S", 0.3)
    opened = lab.raw(b"GET / HTTP/1.1\r\n")
    begun_s = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while time.monotonic() - begun_s < 20:
            opened.sendall(b"X")
            time.sleep(0.05)  # Each byte comes in time, the request does not.
    assert time.monotonic() - begun_s < 10
    opened.close()


def test_the_number_of_streams_is_bounded_and_a_closed_one_makes_room(lab: Lab) -> None:
    opened = [lab.stream() for _ in range(MOST_STREAMS)]
    assert {answer.status for _, answer in opened} == {200}
    answer, content = lab.ask("GET", "/news")
    assert answer.status == 503
    assert json.loads(content) == {"error": f"{MOST_STREAMS} pages are open; close one"}
    assert served(lab)
    for connection, one in opened:
        one.close()
        connection.close()

    def has_room() -> bool:
        connection, answer = lab.stream()
        connection.close()
        return answer.status == 200

    until(has_room)


def test_a_stream_that_nobody_reads_is_closed_and_holds_no_memory(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_server._Handler, "timeout", 1.5)
    lab.exporter.more = "x" * 100_000
    before = threading.enumerate()
    opened = lab.raw(b"GET /news HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: others(before) == 1)
    until(lambda: not others(before))
    opened.close()


def test_a_stream_ends_with_the_lab() -> None:
    made = Lab()
    _, answer = made.stream()
    answer.readline()
    begun_s = time.monotonic()
    made.server.close()
    answer.read()
    assert time.monotonic() - begun_s < 5
