"""Reads the arguments of `linklab link`, checks the command, and sends it to a live lab."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from linklab.core import units
from linklab.core.bounded import Name
from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import (
    MAX_QUEUE_BYTES,
    MAX_RATE_BPS,
    MAX_RTT_S,
    MAX_TIME_S,
    MIN_LENGTH_S,
    MIN_RATE_BPS,
)
from linklab.lab.player.control import Command
from linklab.models import impairments
from linklab.models.events import round_trip
from linklab.models.roaming import HANDOVERS
from linklab.realtime import impairing, proof, token
from linklab.realtime.address import to_text
from linklab.scenario import Scenario
from linklab.schema.mapping import boolean, guess

GUARD = "X-Linklab"
"""The HTTP header with the lab's token (`token.py`)."""

REASSOCIATION_S = HANDOVERS["reassociation"].outage_s
"""The duration of a handover on a link without access points."""

OUTAGE_S = 3.0
"""The default duration of an outage."""

CHANGES = {
    "down": "the carrier goes",
    "up": "the carrier comes",
    "outage": "everything is lost, for 3 s unless --for says; VALUE false ends it",
    "handover": "to the access point VALUE, or the next",
    "rate": "VALUE such as 10mbit, of the downlink",
    "uplink": "VALUE such as 2mbit",
    "rtt": "VALUE such as 80ms",
    "jitter": "VALUE such as 4ms",
    "loss": "VALUE such as 1%",
    "queue": "VALUE such as 500kB, of both directions",
    "impair_down": "VALUE such as 'loss: 1 %, delay: 20 ms', of the downlink",
    "impair_up": "the same of the uplink",
    "restore": "the link becomes as the scenario says",
}
"""The changes of a link, each with its value."""

LIMITS: dict[str, tuple[float, float, Callable[[Any], str]]] = {
    "down_rate_bps": (MIN_RATE_BPS, MAX_RATE_BPS, units.format_rate),
    "up_rate_bps": (MIN_RATE_BPS, MAX_RATE_BPS, units.format_rate),
    "rtt_s": (0.0, MAX_RTT_S, units.format_duration),
    "jitter_s": (0.0, MAX_RTT_S, units.format_duration),
    "loss_ratio": (0.0, 1.0, units.format_ratio),
    "queue_bytes": (FRAME_BYTES, MAX_QUEUE_BYTES, units.format_size),
    "duration_s": (MIN_LENGTH_S, MAX_TIME_S, units.format_duration),
}
"""The limits of a command's values. They are those of a scenario."""


def command_of(link: str, change: str, value: str | None, duration: str | None) -> Command:
    """Makes a command of the arguments `link CHANGE [VALUE] [--for DURATION]`.

    Raises ValueError (UnitError) for other arguments.
    """
    span_s = None if duration is None else units.parse_duration(duration)
    if change in ("down", "up", "restore") and value is not None:
        raise ValueError(f"{change!r} takes no value, but {value!r} was given")
    match change:
        case "down" | "up":
            return Command(link=link, carrier=change, duration_s=span_s)
        case "outage":
            is_out = value is None or boolean(value)
            if is_out and span_s is None:
                span_s = OUTAGE_S
            return Command(link=link, outage=is_out, duration_s=span_s)
        case "handover":
            return Command(link=link, handover=value or "next")
        case "restore":
            return Command(link=link, restore=True)
    if value is None:
        raise ValueError(f"{change!r} needs a value: {CHANGES[change]}")
    field, parse = _VALUES[change]
    return Command(link=link, duration_s=span_s, **{field: parse(value)})


_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "rate": ("down_rate_bps", units.parse_rate),
    "uplink": ("up_rate_bps", units.parse_rate),
    "rtt": ("rtt_s", units.parse_duration),
    "jitter": ("jitter_s", units.parse_duration),
    "loss": ("loss_ratio", units.parse_ratio),
    "queue": ("queue_bytes", units.parse_size),
    **{
        key: (key, functools.partial(impairing.parse, direction))
        for direction, key in impairments.KEYS.items()
    },
}
"""The command's field that a change sets, and how its value is read."""

_WORDS = {field: change for change, (field, _) in _VALUES.items()} | {"duration_s": "for"}
"""What users call a command's field."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"span": "for"}):
    """A change of a link in words, as the page sends it: those of `linklab link`."""

    link: Name
    change: Name
    value: Name | None = None
    span: Name | None = None

    def command(self) -> Command:
        """Returns the command. Raises ValueError for other words."""
        if self.change not in CHANGES:
            raise ValueError(f"no change is {self.change!r}; allowed: {', '.join(CHANGES)}")
        return command_of(self.link, self.change, self.value, self.span)


def lasting(standing: Command | None, command: Command) -> Command | None:
    """Merges a command into those that also hold for later runs. Pure."""
    if command.restore:
        return None
    if command.duration_s is not None or command.handover is not None:
        return standing
    before = standing or Command(link=command.link)
    fields: dict[str, Any] = msgspec.structs.asdict(before)
    fields |= {
        name: value
        for name, value in msgspec.structs.asdict(command).items()
        if value is not None and value is not UNSET
    }
    for direction, key in impairments.KEYS.items():
        earlier, change = impairments.of(before, direction), impairments.of(command, direction)
        if earlier is not UNSET and change is not UNSET:
            fields[key] = earlier.changed(change)
    if fields.get("carrier") == "up":  # The scenario's own state.
        fields["carrier"] = None
    if fields.get("outage") is False:
        fields["outage"] = None
    made = Command(**fields)
    return None if made == Command(link=command.link) else made


def feasible(scenario: Scenario, command: Command, standing: Command | None = None) -> Command:
    """Returns the command as this scenario's links can execute it. Raises ValueError. Pure.

    `standing` is what earlier commands to the same link still do.
    """
    if command.next or command.pause is not None:
        return command
    if command.algorithm is not None:
        raise ValueError("an algorithm can only be the next one: the command needs next")
    if command.link not in scenario.links:
        raise ValueError(
            f"no link is called {command.link!r}{guess(command.link, scenario.links)}; "
            f"there are: {', '.join(scenario.links)}"
        )
    if command == Command(link=command.link, duration_s=command.duration_s):
        raise ValueError("the command changes nothing")
    if command.carrier not in (None, "up", "down"):
        raise ValueError(f"a carrier cannot be {command.carrier!r}; allowed: up, down")
    for name, (least, most, shown_as) in LIMITS.items():
        value = getattr(command, name)
        if value is not None and not least <= value <= most:
            given = shown_as(value) if 0 <= value < math.inf else f"{value:g}"
            raise ValueError(
                f"{_WORDS[name]} cannot be {given}; allowed: {shown_as(least)} to {shown_as(most)}"
            )
    if command.restore and command != Command(link=command.link, restore=True):
        raise ValueError("a link that becomes as the scenario says takes no other change")
    _require_fitting_jitter(scenario, command, standing)
    if impairments.impairs(command):
        changes = (command,) if standing is None else (standing, command)
        link = scenario.links[command.link]
        impairing.require_fit((link, *changes), scenario.distributions, link.families)
    if command.handover is None:
        return command
    points = scenario.links[command.link].access_points
    if len(points) < 2:
        return Command(link=command.link, carrier="down", duration_s=REASSOCIATION_S)
    if command.handover not in ("next", *points):
        raise ValueError(
            f"no access point is called {command.handover!r}; there are: {', '.join(points)}"
        )
    return command


def _require_fitting_jitter(scenario: Scenario, command: Command, standing: Command | None) -> None:
    """Raises ValueError if a changed jitter or round trip does not fit the other one."""
    if command.jitter_s is None and command.rtt_s is None:
        return
    link = scenario.links[command.link]
    changes = (command,) if standing is None else (standing, command)
    rtt_s, jitter_s = round_trip(link.rtt_s, link.jitter_s, changes)
    if jitter_s > rtt_s / 2:
        raise ValueError(
            f"a jitter of {units.format_duration(jitter_s)} does not fit a round trip of "
            f"{units.format_duration(rtt_s)}; allowed: a jitter of at most half the round trip"
        )


def in_words(command: Command, *, is_executed: bool = True) -> str:
    """Describes a command for people, and whether the lab has executed it. Pure."""
    if command.next:
        return f"on to {command.algorithm or 'the next algorithm'}"
    if command.pause is not None:
        return "no further download begins" if command.pause else "downloads go on"
    more = "" if is_executed else " (the lab has not applied it yet)"
    return f"{command.link}: {command.in_words()}{more}"


_COMMAND = "/command"
_MOST_BYTES = 1 << 16
"""The most bytes read of a response."""

_ANSWER_S = 10.0
"""The longest wait for a response. The lab itself waits up to `control.ANSWER_S` for a change."""


def send(address: tuple[str, int], command: Command, secret: str | None = None) -> str:
    """Sends a command to a live lab, and returns its answer. Raises RuntimeError if that fails.

    `secret` is the lab's token, by default the one that is known for the address. It is not sent.
    """
    secret = secret or token.known(address) or ""
    asked = msgspec.json.encode(command)
    try:
        match json.loads(_exchanged(address, "GET", proof.PATH)[0]):
            case {"challenge": str(challenge)}:
                pass
            case _:
                raise _no_lab(address)
        signed = proof.signature(secret, _COMMAND, challenge, asked)
        header = {proof.HEADER: f"{challenge}:{signed}"}
        text, mark = _exchanged(address, "POST", _COMMAND, asked, header)
        answer = json.loads(text)
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise RuntimeError(
            f"no live lab answers at {to_text(address)} ({error}): start one with `linklab live`, "
            "or name its address with --live"
        ) from None
    match answer:
        case {"error": str(why)}:
            raise RuntimeError(why)
        case {"done": str(done)} if proof.is_signed(mark, secret, proof.ANSWER, challenge, text):
            return done
    raise _no_lab(address)


def _no_lab(address: tuple[str, int]) -> RuntimeError:
    return RuntimeError(
        f"what answers at {to_text(address)} is no live lab: name the address of one with --live"
    )


def _exchanged(
    address: tuple[str, int],
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[bytes, str]:
    """Asks a lab. Returns its answer and the answer's signature. Raises OSError, HTTPException."""
    connection = http.client.HTTPConnection(*address, timeout=_ANSWER_S)
    host = {"Host": to_text(("localhost", address[1]))}
    with contextlib.closing(connection):
        connection.request(method, path, body, host | (headers or {}))
        answer = connection.getresponse()
        return answer.read(_MOST_BYTES), answer.headers.get(proof.HEADER, "")
