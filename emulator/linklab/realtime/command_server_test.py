"""Tests command_server.py: its answers, and whom it refuses. page_server_test.py tests the page."""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from linklab.core.records import RecordError
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.netlink import Channel
from linklab.lab.player.control import Command
from linklab.realtime.command_server import LiveServer
from linklab.realtime.link_command import UnknownLinkError, send
from linklab.realtime.token import ENVIRONMENT

TOKEN = "known-to-the-labs-account"

STATUS: dict[str, Any] = {
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
    broken = False

    def collect(self) -> Iterator[Metric]:
        if self.broken:
            raise RecordError("links.jsonl:3: nonsense")
        yield GaugeMetricFamily("linklab_lateness_seconds", "Late.", value=0.5)


class Lab:
    """A server on a free port, and what it was commanded."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.obeyed: list[Command] = []
        self.server = LiveServer(("127.0.0.1", 0), self.metrics, lambda: STATUS, self.obey, TOKEN)

    def obey(self, command: Command) -> str:
        if command.link == "eth0":
            raise UnknownLinkError("no link is called 'eth0'")
        self.obeyed.append(command)
        return "so be it"

    def ask(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, str, str]:
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers["Content-Type"], text


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv(ENVIRONMENT, TOKEN)
    made = Lab()
    yield made
    made.server.close()


def test_metrics_in_both_formats_of_prometheus(lab: Lab) -> None:
    status, kind, text = lab.ask("GET", "/metrics")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert "linklab_lateness_seconds 0.5\n" in text
    _, kind, text = lab.ask("GET", "/metrics", Accept="application/openmetrics-text")
    assert kind.split(";")[0] == "application/openmetrics-text"
    assert text.endswith("# EOF\n")


def test_metrics_that_cannot_be_had_are_an_error_and_no_empty_answer(lab: Lab) -> None:
    lab.metrics.broken = True
    status, _, text = lab.ask("GET", "/metrics")
    assert status == 500
    assert "links.jsonl:3" in text


def test_a_command_is_obeyed(lab: Lab) -> None:
    assert send(lab.server.address, Command(link="wifi", carrier="down")) == "so be it"
    assert lab.obeyed == [Command(link="wifi", carrier="down")]


@pytest.mark.parametrize("token", ["", "1", "linklab", TOKEN[:-1], TOKEN + "x", "ä"])
def test_who_does_not_know_the_token_commands_nothing(lab: Lab, token: str) -> None:
    for headers in ({"X_Linklab": token}, {"X_Linklab": token, "Host": "localhost:9464"}):
        status, _, text = lab.ask("PATCH", "/lab", '{"next": ""}', **headers)
        assert status == 403
        assert "needs the lab's token" in text
    assert not lab.obeyed


def test_on_all_addresses_too(lab: Lab) -> None:
    server = LiveServer(("0.0.0.0", 0), lab.metrics, lambda: STATUS, lab.obey, TOKEN)
    try:
        for token, status in (("linklab", 403), (TOKEN, 200)):
            connection = http.client.HTTPConnection("127.0.0.2", server.address[1], timeout=60)
            headers = {"X-Linklab": token, "Host": "127.0.0.2"}
            connection.request("PATCH", "/lab", '{"next": ""}', headers)
            assert connection.getresponse().status == status
            connection.close()
    finally:
        server.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("192.0.2.2", 200),
        ("192.0.2.2:9464", 200),
        ("[::ffff:192.0.2.2]:9464", 200),
        ("[::ffff:c000:202]", 200),
        ("192.0.2.3", 403),
        ("[::ffff:192.0.2.3]", 403),
        ("[::192.0.2.2]", 403),
        ("[2001:db8::2]", 403),
        ("192.0.2.2.evil.example", 403),
        ("evil.example", 403),
        ("", 403),
    ],
)
def test_where_both_protocols_come_in_an_ipv4_address_is_known(
    lab: Lab, loopback: ExitStack, host: str, status: int
) -> None:
    channel = loopback.enter_context(contextlib.closing(Channel()))
    channel.request(rtnetlink.add_address(socket.if_nametoindex("lo"), "192.0.2.2", 32))
    server = LiveServer(("::", 0), lab.metrics, lambda: STATUS, lab.obey, TOKEN)
    loopback.callback(server.close)
    connection = http.client.HTTPConnection("192.0.2.2", server.address[1], timeout=60)
    loopback.callback(connection.close)
    connection.request("GET", "/status", headers={"Host": host})
    assert connection.getresponse().status == status


def test_a_changed_link_is_shown(lab: Lab) -> None:
    status, _, text = lab.ask("PATCH", "/lab/links/wifi", '{"down": "2mbit"}', X_Linklab=TOKEN)
    shown = json.loads(text)
    assert (status, shown["done"], shown["down"], shown["bytes"]) == (200, "so be it", "down", 1)
    assert lab.obeyed == [Command(link="wifi", down_rate_bps=2_000_000)]
    whole = json.loads(lab.ask("GET", "/lab")[2])
    assert (whole["state"], whole["seed"], list(whole["links"])) == ("running", 3, ["wifi"])
    assert lab.ask("GET", "/lab", Host="evil.example")[0] == 403


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/lab/links/wifi", {"down": "3"}, 422, "'3' has no unit"),
        ("/lab/links/wifi", {"colour": "red"}, 400, "no field is called 'colour'"),
        ("/lab/links/eth0", {"down": "3mbit"}, 404, "no link is called 'eth0'"),
        ("/lab/links/", {"next": ""}, 404, "changes go to /lab/links/NAME and /lab"),
        ("/lab", {"down": "3mbit"}, 400, "no field is called 'down'"),
    ],
)
def test_what_is_no_change_is_refused_in_words(
    lab: Lab, path: str, body: dict[str, str], status: int, said: str
) -> None:
    got, _, text = lab.ask("PATCH", path, json.dumps(body), X_Linklab=TOKEN)
    assert (got, said in json.loads(text)["error"]) == (status, True), text
    assert not lab.obeyed


def test_a_command_that_cannot_be_carried_out_is_refused_with_the_reason(lab: Lab) -> None:
    with pytest.raises(RuntimeError, match="no link is called 'eth0'"):
        send(lab.server.address, Command(link="eth0", carrier="down"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "https://evil.example", "Content-Type": "text/plain"}, 403),
        ({"X_Linklab": TOKEN, "Host": "evil.example"}, 403),
        ({"X_Linklab": TOKEN, "Host": "127.0.0.1.evil.example:9464"}, 403),
        ({"X_Linklab": TOKEN, "Host": "192.0.2.7:9464"}, 403),
        ({"X_Linklab": TOKEN, "Host": ""}, 403),
        ({"X_Linklab": TOKEN, "Origin": "https://evil.example"}, 403),
        ({"X_Linklab": TOKEN, "Origin": "null"}, 403),
        ({"X_Linklab": TOKEN, "Origin": "http://localhost:3000", "Host": "localhost:9464"}, 403),
        ({"X_Linklab": TOKEN, "Sec_Fetch_Site": "cross-site"}, 403),
        ({"X_Linklab": TOKEN, "Sec_Fetch_Site": "same-site"}, 403),
        ({"X_Linklab": TOKEN, "Sec_Fetch_Site": "same-origin"}, 200),
        ({"X_Linklab": TOKEN, "Origin": "http://localhost:9464", "Host": "localhost:9464"}, 200),
        ({"X_Linklab": TOKEN, "Host": "localhost:9464"}, 200),
        ({"X_Linklab": TOKEN, "Host": "[::1]:9464"}, 200),
        ({"X_Linklab": TOKEN}, 200),
    ],
)
def test_a_page_in_a_browser_cannot_command_the_lab(
    lab: Lab, headers: dict[str, str], status: int
) -> None:
    assert lab.ask("PATCH", "/lab", '{"next": ""}', **headers)[0] == status
    assert bool(lab.obeyed) == (status == 200)


def test_no_site_is_allowed_to_ask_with_the_header(lab: Lab) -> None:
    status, _, text = lab.ask("OPTIONS", "/lab", Origin="https://evil.example")
    assert status == 501
    assert "Access-Control-Allow" not in text


@pytest.mark.parametrize("body", ["", "{", '{"nxt": ""}', '{"next": 3}', "[]", "\xff"])
def test_what_is_no_command_is_refused(lab: Lab, body: str) -> None:
    status, _, text = lab.ask("PATCH", "/lab", body, X_Linklab=TOKEN)
    assert status == 400
    assert json.loads(text)["error"]
    assert not lab.obeyed


def test_a_body_too_long_for_a_command_is_not_read(lab: Lab) -> None:
    assert lab.ask("PATCH", "/lab", "x" * 5000, X_Linklab=TOKEN)[0] == 413


@pytest.mark.parametrize("path", ["/", "/status"])
def test_the_status_is_json(lab: Lab, path: str) -> None:
    status, kind, text = lab.ask("GET", path)
    assert (status, kind, text) == (200, "application/json", json.dumps(STATUS, indent=2) + "\n")
    assert lab.ask("GET", path, Host="evil.example")[0] == 403


def test_other_paths_are_not_found(lab: Lab) -> None:
    assert lab.ask("GET", "/nothing")[0] == 404
    assert lab.ask("PATCH", "/nothing", "{}", X_Linklab=TOKEN)[0] == 404


def test_an_address_that_is_taken_is_said(lab: Lab) -> None:
    def nothing(_: Command) -> str:
        return ""

    status: dict[str, Any] = {}
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{lab.server.address[1]}"):
        LiveServer(lab.server.address, lab.metrics, lambda: status, nothing, TOKEN)


def challenged(lab: Lab) -> str:
    return str(json.loads(lab.ask("GET", "/challenge")[2])["challenge"])


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
        assert lab.ask("PATCH", "/lab/links/wifi", text, X_Linklab_Proof=given)[0] == 403
        assert len(lab.obeyed) == turn
        right = signed(challenged(lab), "/lab/links/wifi", body, TOKEN)
        assert lab.ask("PATCH", "/lab/links/wifi", body, X_Linklab_Proof=right)[0] == 200
        assert lab.ask("PATCH", "/lab/links/wifi", body, X_Linklab_Proof=right)[0] == 403
        assert len(lab.obeyed) == turn + 1
