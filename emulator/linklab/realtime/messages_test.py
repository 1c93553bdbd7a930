import json
from http import HTTPStatus

import msgspec
import pytest
from msgspec import UNSET

from linklab.core.impairments import Impairments
from linklab.lab.player.control import Command
from linklab.realtime import messages
from linklab.realtime.messages import LinkChange, Problem, RefusedError, StartLab


def refusal_of(body: object, kind: type = LinkChange) -> Problem:
    """Returns why a body is refused."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(RefusedError) as raised:
        messages.command_of("wifi", messages.decoded(content, kind))
    return raised.value.problem


def command_of(**fields: object) -> Command:
    """Returns the command of a change."""
    return messages.command_of("wifi", messages.decoded(json.dumps(fields).encode(), LinkChange))


def test_a_change_has_the_keys_and_units_of_an_event() -> None:
    change = {
        "carrier": "down",
        "down": "2 Mbit/s",
        "up": "1mbit",
        "rtt": "80 ms",
        "jitter": "4 ms",
        "loss": "1 %",
        "queue": "500 kB",
        "fade": "50 %",
        "cap": "8 Mbit/s",
        "cross": "1 Mbit/s",
        "outage": True,
        "handover": "next",
        "for": "3 s",
        "impair_down": {"delay": "20 ms"},
        "impair_up": {"loss": "1 %", "loss_burst": "3", "in_order": False, "police": "none"},
    }
    assert {row.key for row in messages.ROWS} == set(change)
    assert command_of(**change) == Command(
        link="wifi",
        carrier="down",
        down_rate_bps=2_000_000,
        up_rate_bps=1_000_000,
        rtt_s=0.08,
        jitter_s=0.004,
        loss_ratio=0.01,
        queue_bytes=500_000,
        fade_ratio=0.5,
        cap_bps=8_000_000,
        cross_bps=1_000_000,
        outage=True,
        handover="next",
        duration_s=3.0,
        impair_down=Impairments(delay_s=0.02),
        impair_up=Impairments(
            loss_ratio=0.01, loss_burst_packets=3.0, in_order=False, police_bps=0
        ),
    )
    assert command_of(restore=True) == Command(link="wifi", restore=True)
    assert messages.decoded(b"{}", LinkChange).down_rate_bps is UNSET


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"down": "2"}, Problem("'2' has no unit", "down", "a rate such as '80 Mbit/s'")),
        (
            {"down": "1 bit/s"},
            Problem(
                "'1 bit/s' is too little to be a rate",
                "down",
                "at least 1 kbit/s (for an outage write 'carrier: down' in an event)",
            ),
        ),
        ({"carrier": "off"}, Problem("unknown value 'off'", "carrier", "up, down")),
        ({"down": 2}, Problem("Expected `str`, got `int`", "down", "1 kbit/s to 10 Gbit/s")),
        ({"down": None}, Problem("Expected `str`, got `null`", "down", "1 kbit/s to 10 Gbit/s")),
        (
            {"impair_up": {"loss": "1"}},
            Problem("'1' has no unit", "impair_up.loss", "a ratio such as '0.3 %'"),
        ),
        (
            {"impair_up": {"loss": 1}},
            Problem("Expected `str`, got `int`", "impair_up.loss", "0 % to 100 %, such as '0.3 %'"),
        ),
        (
            {"impair_up": {"in_order": "no"}},
            Problem("Expected `bool`, got `str`", "impair_up.in_order", "true, false"),
        ),
        ({"for": "0 s"}, Problem("'0 s' is out of range", "for", "1 ms to 86400 s")),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(body: object, problem: Problem) -> None:
    assert refusal_of(body) == problem


def test_an_unknown_field_is_named_with_the_known_ones() -> None:
    problem = refusal_of({"dwn": "2 Mbit/s"})
    assert (problem.field, problem.error) == (
        "dwn",
        "no field is called 'dwn' (did you mean 'down'?)",
    )
    assert problem.allowed is not None
    assert problem.allowed.split(", ")[:3] == ["for", "carrier", "down"]
    inner = refusal_of({"impair_up": {"los": "1 %"}})
    assert inner.field == "impair_up.los"
    assert inner.error == "no field is called 'los' (did you mean 'loss'?)"
    assert inner.allowed is not None
    assert inner.allowed.split(", ")[:2] == ["loss", "loss_burst"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"3", b"\xff", b'"\xed\xa0\x80"', b"[" * 4096, b'{"a":' * 800]
)
@pytest.mark.parametrize("kind", [LinkChange, StartLab])
def test_what_is_no_such_json_is_refused(body: bytes, kind: type) -> None:
    with pytest.raises(RefusedError) as raised:
        messages.decoded(body, kind)
    assert raised.value.status == HTTPStatus.BAD_REQUEST
    assert raised.value.problem.allowed


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "scenario"),
        ({"scenario": ""}, "scenario"),
        ({"scenario": "x" * 1001}, "scenario"),
        ({"scenario": "ls", "seed": -1}, "seed"),
        ({"scenario": "ls", "seed": 2**63}, "seed"),
        ({"scenario": "ls", "seed": 1.5}, "seed"),
        ({"scenario": "ls", "origins": "http://localhost/"}, "origins"),
        ({"scenario": "ls", "origins": [3]}, "origins"),
        ({"scenario": "ls", "outside": "yes"}, "outside"),
        ({"scenario": "ls", "algorithm": "alg3"}, "algorithm"),
    ],
)
def test_the_wrong_field_of_a_lab_is_named(body: object, field: str) -> None:
    problem = refusal_of(body, StartLab)
    assert problem.field == field
    assert problem.allowed


def test_a_lab_has_defaults() -> None:
    asked = messages.decoded(b'{"scenario": "ls"}', StartLab)
    assert msgspec.structs.asdict(asked) == {
        "scenario": "ls",
        "origins": [],
        "outside": False,
        "seed": 1,
    }
