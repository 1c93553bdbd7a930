"""Tests that a key of an event that is set back gives what was before, however it is said."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec
import pytest

from linklab import scenario
from linklab.api.live_lab import LabLink, OpenLab
from linklab.core.link_state import LinkState
from linklab.lab.player.control import Command
from linklab.links import stack
from linklab.models import events, impairments
from linklab.realtime import link_command, messages
from linklab.scenario import Scenario

BASE: Final = {
    "carrier": "up",
    "down": "20 Mbit/s",
    "up": "10 Mbit/s",
    "rtt": "40 ms",
    "jitter": "2 ms",
    "loss": "1 %",
    "queue": "500 kB",
    "fade": "100 %",
    "cap": "10 Gbit/s",
    "cross": "0 bit/s",
    "outage": "false",
}
"""The value of each key of an event that is as the link is without events."""

OTHERS: Final = {
    "carrier": ("down",),
    "down": ("1 kbit/s", "3 Mbit/s", "80 Mbit/s"),
    "up": ("1 Mbit/s", "50 Mbit/s"),
    "rtt": ("10 ms", "300 ms"),
    "jitter": ("0 s", "400 us"),
    "loss": ("0 %", "20 %"),
    "queue": ("20 kB", "5 MB"),
    "fade": ("0 %", "0.01 %", "20 %"),
    "cap": ("1 kbit/s", "1 Mbit/s", "15 Mbit/s"),
    "cross": ("5 Mbit/s", "1 Gbit/s"),
    "outage": ("true",),
}

IMPAIRED: Final = {
    "loss": ("1 %", "0 %", "5 %"),
    "loss_burst": ("2", "1"),
    "delay": ("5 ms", "20 ms"),
    "jitter": ("1 ms", "0 s"),
    "distribution": ("normal", "pareto"),
    "in_order": ("true", "false"),
    "reorder": ("0 %", "10 %"),
    "duplicate": ("0 %", "3 %"),
    "corrupt": ("0 %", "2 %"),
    "mtu": ("1500 B", "1300 B"),
    "black_hole": ("false", "true"),
    "police": ("none", "4 Mbit/s"),
    "police_burst": ("100 kB", "20 kB"),
    "bleach_ecn": ("false", "true"),
    "nat_udp": ("60 s", "10 s"),
    "nat_tcp": ("300 s", "100 s"),
    "reset_after": ("none", "1 ms", "3 s"),
    "reset_bytes": ("none", "1 MB"),
    "close_bytes": ("2 MB", "none", "1 B"),
    "slice": ("none", "500 B"),
    "slice_pause": ("5 ms", "1 s"),
    "fault_port": ("all", "443", "1"),
}
"""Values of each impairment; the link has the first one."""

UPLINK_ONLY: Final = ("nat_udp", "nat_tcp")

Values = dict[str, str]
"""What an event sets; the keys of impairments are `impair_down.loss` and so on."""


def of_link(direction: str) -> Values:
    return {
        key: values[0]
        for key, values in IMPAIRED.items()
        if direction == "up" or key not in UPLINK_ONLY
    }


def nested(values: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values as a scenario has them."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        outer, _, inner = key.rpartition(".")
        (made.setdefault(outer, {}) if outer else made)[inner] = value
    return made


ALL: Final = BASE | {
    f"impair_{way}.{key}": value for way in ("down", "up") for key, value in of_link(way).items()
}
TIMES: Final = 4
CASES: Final = 12


def text(happening: list[Values]) -> str:
    link = {key: BASE[key] for key in ("down", "up", "rtt", "jitter", "loss", "queue")}
    whole = {
        "name": "back",
        "payload": {"size": "1 MB"},
        "links": {
            "lte": {
                **link,
                "loss_burst": "3",
                **{f"impair_{way}": of_link(way) for way in ("down", "up")},
            }
        },
        "events": [
            {"at": f"{second} s", "link": "lte", **nested(values)}
            for second, values in enumerate(happening, 1)
        ],
    }
    return json.dumps(whole)


def drawn(draws: random.Random, keys: list[str]) -> Values:
    chosen = draws.sample(keys, draws.randint(1, 4))
    return {
        key: draws.choice((ALL[key], *(OTHERS.get(key) or IMPAIRED[key.rpartition(".")[2]])))
        for key in chosen
    }


def history(seed: int, keys: list[str]) -> list[Values]:
    """Returns some changes, then one more, and then one that sets its keys back."""
    draws = random.Random(seed)
    made = [drawn(draws, keys) for _ in range(TIMES)]
    now: Values = {}
    for values in made[:-1]:
        now |= values
    return [*made, {key: now.get(key, ALL[key]) for key in made[-1]}]


def effective(state: LinkState) -> LinkState:
    """Returns the state with the queue's size, which is also that without events."""
    return replace(state, queue_bytes=state.queue_bytes or 500_000)


def states_of_scenario(read: Scenario, number: int) -> list[LinkState]:
    model = stack.models(read, 1)["lte"]
    return [effective(model.at(float(second))) for second in range(number + 1)]


def test_every_key_of_an_event_is_tried() -> None:
    keys = {row.key for row in events.TABLE.flat} - {"at", "after", "link", "for"}
    assert keys == {*BASE, *impairments.KEYS.values(), "handover"}
    assert set(IMPAIRED) == set(impairments.TABLE.keys.all)


@pytest.mark.parametrize("seed", range(4 * CASES))
def test_in_a_scenario(seed: int) -> None:
    made = history(seed, [*ALL])
    read = scenario.parse(text(made))
    states = states_of_scenario(read, len(made))
    assert states[-1] == states[-3], made[-2:]
    # The guest reads what is written.
    assert states_of_scenario(scenario.parse(scenario.to_yaml(read)), len(made)) == states


def one_by_one(values: Values) -> list[tuple[str, Any]]:
    """Returns the changes one by one, with impairments as text."""
    return [
        (key, ", ".join(f"{k}: {v}" for k, v in one.items()) if isinstance(one, dict) else one)
        for key, one in nested(values).items()
    ]


def by_command_line(values: Values) -> list[Command]:
    changes = [link_command.of_words(key, value) for key, value in one_by_one(values)]
    return [link_command.command_of("lte", change) for change in changes]


def by_http(values: Values) -> list[Command]:
    body = nested(values)
    booleans = {"true": True, "false": False}
    for key, value in body.items():
        if key == "outage":
            body[key] = booleans[value]
        elif isinstance(value, dict):
            body[key] = {inner: booleans.get(one, one) for inner, one in value.items()}
    change = messages.decoded(json.dumps(body).encode(), messages.LinkChange)
    return [messages.command_of("lte", change)]


def by_python(values: Values) -> list[Command]:
    sent: list[Command] = []
    link = LabLink("lte", cast(OpenLab, SimpleNamespace(send=sent.append)))
    link.set(**nested(values))
    return sent


BY_HAND: Final = [key for key in ALL if key.partition(".")[0] in {row.key for row in messages.ROWS}]


@pytest.mark.parametrize("say", [by_command_line, by_http, by_python])
@pytest.mark.parametrize("seed", range(CASES))
def test_by_hand(say: Callable[[Values], list[Command]], seed: int) -> None:
    made = history(seed, BY_HAND)
    read = scenario.parse(text([]))
    model = stack.models(read, 1)["lte"]
    states = []
    for second, values in enumerate(made):
        for command in say(values):
            sent = msgspec.json.decode(msgspec.json.encode(command), type=Command)
            model.change(link_command.feasible(read, sent).event(), float(second))
        states.append(effective(model.at(float(second))))
    assert states[-1] == states[-3], made[-2:]
    assert states == states_of_scenario(scenario.parse(text(made)), len(made))[1:]


def test_a_handover_leads_back() -> None:
    """It is an act and no state: the link is at its first access point again."""
    radio = "radio: {standard: n, access_points: [{name: a}, {name: b, x: 5 m}]}"
    read = scenario.parse(
        "name: back\npayload: {size: 1 MB}\nlinks:\n"
        f"  wifi: {{down: 20 Mbit/s, up: 10 Mbit/s, rtt: 40 ms, {radio}}}\n"
        "events:\n"
        "  - {at: 5 s, link: wifi, handover: b}\n"
        "  - {at: 10 s, link: wifi, handover: a}\n"
    )
    model = stack.models(read, 1)["wifi"]
    seen = {second: model.at(second / 10).access_point for second in range(150)}
    assert [seen[tenth] for tenth in (40, 90, 140)] == ["a", "b", "a"]
