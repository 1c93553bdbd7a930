"""Tests command_server.py: its answers, and whom it refuses. page_server_test.py tests the page."""

import hmac
import http.client
import json
import random
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from linklab.core.records import RecordError
from linklab.lab.player.control import Command
from linklab.realtime.command_server import LiveServer
from linklab.realtime.link_command import UnknownLinkError, send
from linklab.realtime.one_lab import OneLab
from linklab.realtime.operations import OPERATIONS
from linklab.realtime.session import LiveLab
from linklab.realtime.token import ENVIRONMENT
from linklab.realtime.view import Cursor

TOKEN = "known-to-the-labs-account"

CHANGES = [(one.method, one.path.format(name="wifi")) for one in OPERATIONS if one.changes]

STATUS: dict[str, Any] = {
    "ready": True,
    "scenario": "small",
    "seed": 3,
    "proxies": {},
    "origins": [],
    "now": {
        "t_s": 2.0,
        "keeps_up": True,
        "links": {
            "wifi": {
                "up": True,
                "out": False,
                "access_point": "",
                "values": {
                    key: (0, key) for key in ("down", "up", "rtt", "jitter", "loss", "queue")
                },
                "impaired": {"impair_down": {}, "impair_up": {}},
                "by_hand": [],
                "bytes": {"down": 1, "up": 2},
            }
        },
    },
}


class Metrics(Collector):
    """The exporter of a lab."""

    broken = False
    more = ""

    def collect(self) -> Iterator[Metric]:
        if self.broken:
            raise RecordError("links.jsonl:3: nonsense")
        yield GaugeMetricFamily("linklab_lateness_seconds", "Late.", value=0.5)

    def news(self, cursor: Cursor) -> tuple[Cursor, dict[str, Any]]:
        if self.broken:
            raise RecordError("links.jsonl:3: nonsense")
        number = cursor.run[0]
        return Cursor((number + 1, 0)), {"had": number, "more": self.more}


class Lab:
    """A lab with a server on a free port, and what it was commanded."""

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0), *, page: bool = False) -> None:
        self.exporter = Metrics()
        self.obeyed: list[Command] = []
        self.status: Callable[[], dict[str, Any]] = lambda: STATUS
        self.server = LiveServer(address, OneLab.of(cast(LiveLab, self)), TOKEN, page=page)
        self.address = self.server.address

    def obey(self, command: Command) -> str:
        if command.link == "eth0":
            raise UnknownLinkError("no link is called 'eth0'")
        self.obeyed.append(command)
        return "so be it"

    def begin_anew(self) -> str:
        self.obeyed.append(Command(restore=True))
        return "one goes on, another stays"

    def saved(self, name: str, begins: str) -> str:
        if not name:
            raise ValueError("'' is no name")
        return f"name: {name}\n# {begins}\n"

    def ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        **headers: str,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def change(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        """Sends a change. Returns the answer's status and content."""
        text = body if isinstance(body, str) else json.dumps(body)
        answer, content = self.ask("PATCH", path, text, **headers)
        return answer.status, json.loads(content)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv(ENVIRONMENT, TOKEN)
    made = Lab()
    yield made
    made.server.close()


def test_metrics_in_both_formats_of_prometheus(lab: Lab) -> None:
    answer, text = lab.ask("GET", "/metrics", Host="prometheus-knows-it-by.example")
    assert (answer.status, answer.headers.get_content_type()) == (200, "text/plain")
    assert b"linklab_lateness_seconds 0.5\n" in text
    answer, text = lab.ask("GET", "/metrics", Accept="application/openmetrics-text")
    assert answer.headers.get_content_type() == "application/openmetrics-text"
    assert text.endswith(b"# EOF\n")


def test_metrics_that_cannot_be_had_are_an_error_and_no_empty_answer(lab: Lab) -> None:
    lab.exporter.broken = True
    answer, text = lab.ask("GET", "/metrics")
    assert answer.status == 500
    assert b"links.jsonl:3" in text


def test_a_command_is_obeyed(lab: Lab) -> None:
    assert send(lab.server.address, Command(link="wifi", carrier="down")) == "so be it"
    assert lab.obeyed == [Command(link="wifi", carrier="down")]


def test_the_lab_is_set_back(lab: Lab) -> None:
    status, said = lab.change("/lab", {"restore": True}, X_Linklab=TOKEN)
    assert (status, said["stays"]) == (200, ["one goes on", "another stays"])
    assert lab.obeyed == [Command(restore=True)]


@pytest.mark.parametrize("token", ["", "1", "linklab", TOKEN[:-1], TOKEN + "x", "ä"])
def test_who_does_not_know_the_token_commands_nothing(lab: Lab, token: str) -> None:
    status, said = lab.change("/lab", {"next": ""}, X_Linklab=token)
    assert (status, "needs the lab's token" in said["error"]) == (403, True)
    assert not lab.obeyed


def test_on_all_addresses_too() -> None:
    lab = Lab(("0.0.0.0", 0))
    lab.address = ("127.0.0.2", lab.server.address[1])
    for token, status in (("linklab", 403), (TOKEN, 200)):
        assert lab.change("/lab", {"next": ""}, X_Linklab=token)[0] == status
    lab.server.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("192.0.2.2", 200),
        ("192.0.2.2:9464", 200),
        ("172.17.0.1:32768", 200),
        ("[::ffff:192.0.2.2]:9464", 200),
        ("[2001:db8::2]", 200),
        ("[::1]:9464", 200),
        ("localhost:1", 200),
        ("192.0.2.2.evil.example", 403),
        ("localhost.evil.example", 403),
        ("[evil.example]", 403),
        ("192.0.2", 403),
        ("evil.example", 403),
        ("", 403),
    ],
)
def test_a_lab_answers_to_addresses_that_it_does_not_know_and_to_no_names(
    lab: Lab, host: str, status: int
) -> None:
    """A container is reached by the address of its engine's bridge. Nobody can rebind it."""
    assert lab.ask("GET", "/status", Host=host)[0].status == status
    asked = lab.ask("PATCH", "/lab", '{"next": ""}', Host=host, X_Linklab=TOKEN)
    assert asked[0].status == status
    foreign = {"X_Linklab": TOKEN, "Host": host, "Origin": "http://172.17.0.2"}
    assert lab.ask("PATCH", "/lab", '{"next": ""}', **foreign)[0].status == 403


def test_a_changed_link_is_shown(lab: Lab) -> None:
    status, shown = lab.change("/lab/links/wifi", {"down": "2mbit"}, X_Linklab=TOKEN)
    assert (status, shown["done"], shown["down"], shown["bytes"]) == (200, "so be it", "down", 1)
    assert lab.obeyed == [Command(link="wifi", down_rate_bps=2_000_000)]
    whole = json.loads(lab.ask("GET", "/lab")[1])
    assert (whole["state"], whole["seed"], list(whole["links"])) == ("running", 3, ["wifi"])
    lab.status = lambda: {**STATUS, "ready": False}
    assert json.loads(lab.ask("GET", "/lab")[1])["state"] == "starting"
    assert lab.change("/lab/links/wifi", {"down": "2mbit"}, X_Linklab=TOKEN) == (
        200,
        {"done": "so be it"},
    )


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/lab/links/wifi", {"down": "3"}, 422, "'3' has no unit"),
        ("/lab/links/wifi", {"colour": "red"}, 400, "no field is called 'colour'"),
        ("/lab/links/eth0", {"down": "3mbit"}, 404, "no link is called 'eth0'"),
        ("/lab/links/", {"next": ""}, 404, "there is no /lab/links/"),
        ("/lab", {"down": "3mbit"}, 400, "no field is called 'down'"),
        ("/lab", {}, 422, "changes nothing"),
    ],
)
def test_what_is_no_change_is_refused_in_words(
    lab: Lab, path: str, body: dict[str, str], status: int, said: str
) -> None:
    got, problem = lab.change(path, body, X_Linklab=TOKEN)
    assert (got, said in problem["error"]) == (status, True), problem
    assert not lab.obeyed


def test_a_command_that_cannot_be_carried_out_is_refused_with_the_reason(lab: Lab) -> None:
    with pytest.raises(RuntimeError, match="no link is called 'eth0'"):
        send(lab.server.address, Command(link="eth0", carrier="down"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "https://evil.example", "Content-Type": "text/plain"}, 403),
        ({"Referer": f"http://localhost/#token={TOKEN}"}, 403),
        ({"Cookie": f"token={TOKEN}"}, 403),
        ({"X_Linklab": TOKEN, "Origin": "https://evil.example"}, 403),
        ({"X_Linklab": TOKEN, "Origin": "null"}, 403),
        ({"X_Linklab": TOKEN, "Origin": "http://localhost:3000", "Host": "localhost:9464"}, 403),
        ({"X_Linklab": TOKEN, "Sec_Fetch_Site": "cross-site"}, 403),
        ({"X_Linklab": TOKEN, "Sec_Fetch_Site": "same-site"}, 403),
        ({"X_Linklab": TOKEN, "Sec_Fetch_Site": "same-origin"}, 200),
        ({"X_Linklab": TOKEN, "Origin": "http://localhost:9464", "Host": "localhost:9464"}, 200),
        ({"X_Linklab": TOKEN}, 200),
    ],
)
def test_a_page_in_a_browser_cannot_command_the_lab(
    lab: Lab, headers: dict[str, str], status: int
) -> None:
    for method, path in CHANGES:
        body = '{"next": ""}' if path == "/lab" else '{"down": "2mbit"}'
        got = lab.ask(method, path, body, **headers)[0]
        assert (got.status == 403) == (status == 403)
        assert got.headers["Access-Control-Allow-Origin"] is None
    assert bool(lab.obeyed) == (status == 200)


def test_no_site_is_allowed_to_ask_with_the_header(lab: Lab) -> None:
    answer, _ = lab.ask("OPTIONS", "/lab", Origin="https://evil.example")
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize("body", ["", "{", '{"nxt": ""}', '{"next": 3}', "[]", "\xff"])
def test_what_is_no_command_is_refused(lab: Lab, body: str) -> None:
    status, problem = lab.change("/lab", body, X_Linklab=TOKEN)
    assert (status, bool(problem["error"])) == (400, True)
    assert not lab.obeyed


def test_a_body_too_long_for_a_command_is_not_read(lab: Lab) -> None:
    assert lab.change("/lab", "x" * 5000, X_Linklab=TOKEN)[0] == 413


@pytest.mark.parametrize("path", ["/", "/status"])
def test_the_status_is_json(lab: Lab, path: str) -> None:
    answer, text = lab.ask("GET", path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert text.decode() == json.dumps(STATUS, indent=2) + "\n"


def test_other_methods_and_paths_are_refused_in_json(lab: Lab) -> None:
    for method in ("PUT", "TRACE", "BREW", "HEAD"):
        for path in ("/scenarios", "/metrics"):
            answer, _ = lab.ask(method, path)
            assert (answer.status, answer.headers["Allow"]) == (405, "GET")
    for method, path in (("GET", "/lab/../etc/passwd"), ("PATCH", "/nothing"), ("BREW", "/x")):
        answer, text = lab.ask(method, path, "{}", X_Linklab=TOKEN)
        assert (answer.status, "/openapi.json" in json.loads(text)["allowed"]) == (404, True)


@pytest.mark.parametrize("length", ["", "x", "-1"])
def test_a_body_without_a_length_is_refused(lab: Lab, length: str) -> None:
    with socket.create_connection(lab.server.address, timeout=30) as peer:
        given = f"Content-Length: {length}\r\n" if length else "Transfer-Encoding: chunked\r\n"
        peer.sendall(
            f"POST /lab HTTP/1.1\r\nHost: localhost\r\nX-Linklab: {TOKEN}\r\n{given}\r\n".encode()
        )
        assert peer.recv(4096).split()[1] in (b"411", b"413")


@pytest.mark.parametrize(
    "asked", [b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_what_is_no_request_is_refused_in_json(lab: Lab, asked: bytes) -> None:
    with socket.create_connection(lab.server.address, timeout=30) as peer:
        peer.sendall(asked)
        said = peer.makefile("rb").read()
    assert b'"error"' in said
    assert lab.ask("GET", "/scenarios")[0].status == 200


def test_a_shell_s_lab_is_neither_stopped_nor_followed_by_another_one(lab: Lab) -> None:
    assert lab.ask("DELETE", "/lab", X_Linklab=TOKEN)[0].status == 409
    answer, text = lab.ask("POST", "/lab", '{"scenario": "ls"}', X_Linklab=TOKEN)
    problem = json.loads(text)["error"]
    assert (answer.status, problem) == (409, "there is a lab already: it is running")


def test_an_address_that_is_taken_is_said(lab: Lab) -> None:
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{lab.server.address[1]}"):
        Lab(lab.server.address)


def challenged(lab: Lab) -> str:
    return str(json.loads(lab.ask("GET", "/challenge")[1])["challenge"])


def test_a_signed_command_is_obeyed_once_and_only_as_it_was_signed(lab: Lab) -> None:
    """One byte changed anywhere, a used challenge and an invented one are no proof."""
    draw = random.Random(48)
    body = '{"carrier": "down"}'

    def signed(challenge: str, path: str, text: str, token: str) -> str:
        said = f"PATCH {path}\n{challenge}\n{text}".encode()
        return f"{challenge}:{hmac.digest(token.encode(), said, 'sha256').hex()}"

    for turn in range(40):
        challenge = challenged(lab)
        right = signed(challenge, "/lab/links/wifi", body, TOKEN)
        at = draw.randrange(len(right))
        other = draw.choice([one for one in "0123456789abcdef" if one != right[at]])
        wrong = [
            (body, signed(challenged(lab), "/lab/links/lte", body, TOKEN)),
            (body, signed(challenged(lab), "/lab/links/wifi", body, TOKEN[1:])),
            (body, signed(f"{draw.getrandbits(128):032x}", "/lab/links/wifi", body, TOKEN)),
            (body, right[:at] + other + right[at + 1 :]),
            (body.replace("down", "up"), signed(challenged(lab), "/lab/links/wifi", body, TOKEN)),
        ]
        text, given = draw.choice(wrong)
        assert lab.change("/lab/links/wifi", text, X_Linklab_Proof=given)[0] == 403
        assert len(lab.obeyed) == turn
        right = signed(challenged(lab), "/lab/links/wifi", body, TOKEN)
        assert lab.change("/lab/links/wifi", body, X_Linklab_Proof=right)[0] == 200
        assert lab.change("/lab/links/wifi", body, X_Linklab_Proof=right)[0] == 403
        assert len(lab.obeyed) == turn + 1
