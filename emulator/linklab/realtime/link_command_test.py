"""Tests link_command.py."""

import hmac
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.core.impairments import Impairments
from linklab.lab.player.control import Command
from linklab.models import events
from linklab.realtime.link_command import (
    REASSOCIATION_S,
    as_line,
    change_of,
    command_of,
    feasible,
    in_words,
    lasting,
    of_scenario,
    of_words,
    send,
)
from linklab.scenario import Scenario, link_words

TOKEN = "known-to-the-labs-account"


@pytest.mark.parametrize(
    ("word", "value", "fields"),
    [
        ("carrier", "down", {"carrier": "down"}),
        ("down", "10mbit", {"down_rate_bps": 10_000_000}),
        ("outage", "false", {"outage": False}),
        ("handover", "ap2", {"handover": "ap2"}),
        ("fade", "50 %", {"fade_ratio": 0.5}),
        ("cap", "1 Mbit/s", {"cap_bps": 1_000_000}),
        ("cross", "0 bit/s", {"cross_bps": 0}),
        (
            "impair_up",
            "loss: 1 %, delay: 20 ms",
            {"impair_up": Impairments(loss_ratio=0.01, delay_s=0.02)},
        ),
        (
            "impair_down",
            "{police: none, bleach_ecn: true}",
            {"impair_down": Impairments(police_bps=0, bleach_ecn=True)},
        ),
        ("restore", None, {"restore": True}),
    ],
)
def test_words_become_a_command(word: str, value: str | None, fields: dict[str, Any]) -> None:
    command = Command(link="lte", **fields)
    assert command_of("lte", of_words(word, value)) == command
    assert command_of("lte", change_of(command)) == command


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rtt": "11 s"}, "^rtt: '11 s' is out of range"),
        ({"impair_up": "loss: 1"}, "^impair_up.loss: '1' has no unit; allowed: a ratio"),
        ({"impair_up": "los: 1 %"}, "^impair_up: unknown key 'los' .did you mean 'loss'"),
        ({"impair_up": "loss"}, "impair_up.loss: has no value"),
        ({"impair_up": "loss: 1 %}{"}, "not valid YAML"),
        ({"impair_up": "loss: [1 %]"}, "impair_up.loss: must be a single value"),
        ({"impair_up": "loss: 1 %, loss: 2 %"}, "impair_up.loss: is given twice"),
        ({"impair_up": "delay: 99 s"}, "impair_up.delay: '99 s' is out of range"),
        ({"for": "3 s"}, "^changes nothing; allowed: any of carrier, down"),
        ({"at": "3 s"}, "^unknown key 'at'"),
    ],
)
def test_words_that_are_none(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        command_of("lte", change)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (Command(link="eth0", carrier="up"), "no link is called 'eth0'; there are: wifi, lte"),
        (Command(link="wifi", jitter_s=0.006), "a jitter of 6 ms does not fit a round trip of 10"),
        (Command(link="wifi", algorithm="alg1"), "the command needs next"),
        (Command(link="wifi", impair_up=Impairments(reorder_ratio=0.1)), "^impair_up"),
        (Command(link="wifi", impair_down=Impairments()), "^impair_down: .*allowed: "),
        (Command(link="wifi", impair_down=Impairments(nat_udp_s=1.0)), "^impair_down.nat_udp: a"),
        (
            Command(
                link="wifi", impair_down=Impairments(delay_s=0.1, jitter_s=0.01, distribution="no")
            ),
            "^impair_down.distribution: no distribution is called 'no'",
        ),
    ],
)
def test_what_the_scenarios_links_cannot_do(small: Scenario, command: Command, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        feasible(small, command)


def test_impairments_fit_the_families_of_the_link(small: Scenario) -> None:
    links = {name: replace(link, families=(6,)) for name, link in small.links.items()}
    six = replace(small, links=links)
    narrow = Command(link="wifi", impair_down=Impairments(mtu_bytes=1200))
    forgetful = Command(link="wifi", impair_up=Impairments(nat_udp_s=1.0))
    assert [feasible(small, one) for one in (narrow, forgetful)] == [narrow, forgetful]
    with pytest.raises(ValueError, match=r"^impair_down.mtu: 1200 B are too little for IPv6"):
        feasible(six, narrow)
    with pytest.raises(ValueError, match=r"^impair_up.nat_udp: a NAT translates IPv4 only"):
        feasible(six, forgetful)


def test_a_handover_without_access_points_is_a_short_outage(small: Scenario) -> None:
    assert feasible(small, Command(link="lte", handover="next")) == Command(
        link="lte", carrier="down", duration_s=REASSOCIATION_S
    )


def test_a_handover_goes_to_an_access_point_that_there_is() -> None:
    roaming = scenario.parse(ROAMING)
    assert feasible(roaming, Command(link="wifi", handover="next")).handover == "next"
    with pytest.raises(ValueError, match="no access point is called 'ap9'; there are: ap1, ap2"):
        feasible(roaming, Command(link="wifi", handover="ap9"))


def test_what_lasts_for_the_runs_to_come() -> None:
    standing = lasting(None, Command(link="wifi", down_rate_bps=10))
    standing = lasting(standing, Command(link="wifi", carrier="down"))
    assert standing == Command(link="wifi", down_rate_bps=10, carrier="down")
    assert lasting(standing, Command(link="wifi", rtt_s=1.0, duration_s=3.0)) == standing
    assert lasting(standing, Command(link="wifi", handover="next")) == standing
    standing = lasting(standing, Command(link="wifi", carrier="up"))
    assert standing == Command(link="wifi", down_rate_bps=10)
    assert lasting(None, Command(link="wifi", carrier="up")) is None
    standing = lasting(standing, Command(link="wifi", outage=True))
    assert standing == Command(link="wifi", down_rate_bps=10, outage=True)
    over = Command(link="wifi", outage=False)
    assert lasting(standing, over) == Command(link="wifi", down_rate_bps=10)
    assert in_words(over) == "wifi: outage false"


def test_no_loss_takes_back_an_earlier_loss() -> None:
    standing = lasting(None, Command(link="wifi", loss_ratio=0.01))
    none = Command(link="wifi", loss_ratio=0.0)
    assert lasting(standing, none) == none
    assert in_words(none) == "wifi: loss 0 %"


def test_a_jitter_fits_the_round_trip_that_was_set_by_hand(small: Scenario) -> None:
    slower, jittery = Command(link="wifi", rtt_s=0.1), Command(link="wifi", jitter_s=0.05)
    assert feasible(small, jittery, slower) == jittery
    with pytest.raises(ValueError, match="a jitter of 50 ms does not fit a round trip of 20 ms"):
        feasible(small, Command(link="wifi", rtt_s=0.02), lasting(slower, jittery))


def test_impairments_fit_those_that_were_set_by_hand(small: Scenario) -> None:
    delayed = Command(link="wifi", impair_up=Impairments(delay_s=0.1))
    reordered = Command(link="wifi", impair_up=Impairments(reorder_ratio=0.1))
    assert feasible(small, reordered, delayed) == reordered
    both = lasting(lasting(None, delayed), reordered)
    assert both == Command(link="wifi", impair_up=Impairments(delay_s=0.1, reorder_ratio=0.1))
    other = Command(link="wifi", impair_down=Impairments(loss_ratio=0.1))
    assert lasting(both, other) == Command(
        link="wifi",
        impair_up=Impairments(delay_s=0.1, reorder_ratio=0.1),
        impair_down=Impairments(loss_ratio=0.1),
    )
    with pytest.raises(ValueError, match="impair_up.reorder|needs a delay"):
        feasible(small, Command(link="wifi", impair_up=Impairments(delay_s=0.0)), both)


def test_a_restored_link_has_no_lasting_change() -> None:
    assert lasting(Command(link="wifi", carrier="down"), Command(link="wifi", restore=True)) is None


def test_a_link_is_restored_before_it_becomes_another_one() -> None:
    change = as_line("fast-4g, 1 %")
    command = command_of("wifi", change)
    assert command_of("wifi", change_of(command)) == command
    restored, changed = command.parts()
    assert restored == Command(link="wifi", restore=True)
    assert changed == Command(
        link="wifi",
        down_rate_bps=9_000_000,
        up_rate_bps=1_500_000,
        rtt_s=0.06,
        loss_ratio=0.01,
        queue_bytes=150_000,
    )
    before = Command(link="wifi", carrier="down", jitter_s=0.2)
    assert lasting(before, command) == changed
    assert as_line("wifi, 20mbit, 5ms") == {**as_line("20mbit, 5ms")}


@pytest.mark.parametrize("name", link_words.presets())
def test_every_preset_is_a_change(name: str) -> None:
    command = command_of("one", as_line(name))
    (link,) = scenario.of_links({"one": name}).links.values()
    assert command.restore
    assert (command.down_rate_bps, command.rtt_s) == (link.down_rate_bps, link.rtt_s)


def test_what_a_link_takes_of_another_scenario_and_what_it_cannot() -> None:
    change, left = of_scenario(scenario.find("train"), ["lte", "wifi"])["lte"]
    assert change["down"] == "20 Mbit/s" and change["jitter"] == "11.3 ms"
    assert left == ["pauses"]
    feasible(scenario.find("train"), command_of("lte", change))
    change, left = of_scenario(scenario.find("rural-home"), ["starlink"])["starlink"]
    assert "queue" not in change
    assert left == ["slots", "queue"]
    with pytest.raises(ValueError, match="rural-home has none of the lab's links; it has starl"):
        of_scenario(scenario.find("rural-home"), ["wifi"])


def test_a_command_in_words() -> None:
    assert in_words(Command(next=True)) == "on to the next algorithm"
    assert in_words(Command(next=True, algorithm="alg1")) == "on to alg1"
    assert in_words(Command(pause=True)) == "no further download begins"
    assert in_words(Command(link="wifi", restore=True)) == "wifi: as the scenario says"
    assert (
        in_words(Command(link="wifi", carrier="down", duration_s=3.0))
        == "wifi: carrier down for 3 s"
    )


def test_where_no_lab_answers_the_error_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="no live lab answers at 127.0.0.1:1 .*linklab live"):
        send(("127.0.0.1", 1), Command(next=True))


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], tuple[str, int]]]:
    """Starts a server that answers every command as given, and knows `TOKEN`; its address."""
    with ExitStack() as started:

        def start(answer: bytes) -> tuple[str, int]:
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    self.say(b'{"challenge": "1234"}', "")

                def do_PATCH(self) -> None:
                    said = b"answer\n1234\n" + answer
                    self.say(answer, hmac.digest(TOKEN.encode(), said, "sha256").hex())

                def say(self, text: bytes, mark: str) -> None:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(text)))
                    self.send_header("X-Linklab-Proof", mark)
                    self.end_headers()
                    self.wfile.write(text)

                def log_message(self, format: str, *args: object) -> None:
                    pass

            server = started.enter_context(HTTPServer(("127.0.0.1", 0), Handler))
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            started.callback(server.shutdown)
            return ("127.0.0.1", server.server_port)

        yield start


def test_what_a_lab_says(answering: Callable[[bytes], tuple[str, int]]) -> None:
    assert send(answering(b'{"done": "wifi: up"}'), Command(next=True), TOKEN) == "wifi: up"
    with pytest.raises(RuntimeError, match="is no live lab"):
        send(answering(b'{"done": "wifi: up"}'), Command(next=True), "another token")
    with pytest.raises(RuntimeError, match=r"^there is one algorithm only$"):
        send(answering(b'{"error": "there is one algorithm only"}'), Command(next=True))


@pytest.mark.parametrize(
    "answer", [b'{"message": "not found"}', b"[]", b"7", b"null", b'"done"', b'{"error": {}}']
)
def test_an_answer_that_is_no_labs(
    answering: Callable[[bytes], tuple[str, int]], answer: bytes
) -> None:
    address = answering(answer)
    said = rf"^what answers at 127\.0\.0\.1:{address[1]} is no live lab: .* with --live$"
    with pytest.raises(RuntimeError, match=said):
        send(address, Command(next=True))


ROAMING = """name: roaming
payload: {size: 1 MB}
links:
  wifi:
    up: 20 Mbit/s
    rtt: 10 ms
    down: 60 Mbit/s
    radio: {standard: n, access_points: [{name: ap1}, {name: ap2}]}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
"""


@given(
    st.sampled_from(events.LIVE.keys.all),
    st.none()
    | st.text(max_size=8)
    | st.from_regex(r"[0-9]{1,12} (Mbit/s|ms|s|%|kB|GB)", fullmatch=True),
    st.none() | st.sampled_from(["0 s", "1 us", "9999 h", "3 s", "x"]),
)
def test_no_error_names_a_field_of_the_program(
    change: str, value: str | None, span: str | None
) -> None:
    one_link = scenario.parse(
        "name: one\npayload: {size: 1 MB}\nlinks: {wifi: {down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms}}\n"
    )
    try:
        words = of_words(change, value) | ({} if span is None else {"for": span})
        feasible(one_link, command_of("wifi", words))
    except ValueError as error:
        said = str(error).replace(repr(value), "")
        for field in Command.__struct_fields__:
            if "_" in field and field not in events.LIVE.keys.all:
                assert field not in said


def test_what_a_lab_refuses_names_the_field(answering: Callable[[bytes], tuple[str, int]]) -> None:
    refused = b'{"error": "\'1\' has no unit", "field": "down", "allowed": "a rate"}'
    with pytest.raises(RuntimeError, match="^down: '1' has no unit; allowed: a rate$"):
        send(answering(refused), Command(link="wifi", carrier="up"))
