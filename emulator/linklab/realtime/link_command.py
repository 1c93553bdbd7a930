"""Reads the arguments of `linklab link`, checks the command, and sends it to a live lab."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from linklab.core import units
from linklab.core.errors import LinklabError
from linklab.core.ip_family import Families
from linklab.lab.player.control import Command
from linklab.models import events, impairments, registry
from linklab.models.events import round_trip
from linklab.models.roaming import HANDOVERS
from linklab.realtime import proof, token
from linklab.realtime.address import to_text
from linklab.scenario import Scenario, link_words
from linklab.scenario import link as link_settings
from linklab.schema.document import ScenarioError, compose
from linklab.schema.mapping import Mapping as YamlMapping
from linklab.schema.mapping import guess
from linklab.schema.rows import keys as keys_of

GUARD = "X-Linklab"
"""The HTTP header with the lab's token (`token.py`)."""

REASSOCIATION_S = HANDOVERS["reassociation"].outage_s
"""The duration of a handover on a link without access points."""

RESTORE = "restore"
"""What takes back all changes of a link, before other keys of the same change."""


def command_of(link: str, change: Mapping[str, Any]) -> Command:
    """Makes a command of a change, with the keys of an event in a scenario.

    A value is text, a boolean, or a mapping of impairments. Impairments may also be text such as
    "loss: 1 %, delay: 20 ms". Raises ValueError for other keys and values.
    """
    keys = {key: value for key, value in change.items() if key != RESTORE}
    restore = bool(change.get(RESTORE))
    if restore and not keys:
        return Command(link=link, restore=True)
    text = ", ".join(f"{json.dumps(key)}: {_flow(key, value)}" for key, value in keys.items())
    try:
        mapping = YamlMapping("", compose(f"{{{text}}}", "", "keys"), "", events.LIVE.keys)
        event = events.LIVE.of(mapping, link=link)
    except ScenarioError as error:
        raise _without_place(error) from None
    fields = {row.attribute: getattr(event, row.attribute) for row in events.CHANGES}
    span_s = None if math.isinf(event.duration_s) else event.duration_s
    return Command(link=link, duration_s=span_s, restore=restore, **fields)


def of_words(key: str, value: str | None) -> dict[str, Any]:
    """Returns the change of one key in words. `RESTORE` has no value."""
    return {key: True if key == RESTORE else value or ""}


def as_line(line: str) -> dict[str, Any]:
    """Returns the change that makes a link what a line of `link_words` says, and else as the scenario
    says. Raises ValueError."""
    keys = link_words.keys_of(line)
    return {RESTORE: True} | {key: one for key, one in keys.items() if not key.endswith("kind")}


def as_scenario(scenario: Scenario, name: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the change that makes a link what another scenario's link is at its start, and the keys
    that no change of a running link has, such as models. Pure."""
    link = scenario.links[name]
    written = link_settings.write(name, link)
    change = {row.key: written[row.key] for row in events.CHANGES if row.key in written}
    left = [registry.of_settings(one).rows[0].key for one in link.models]
    if not isinstance(written.get("queue"), str):
        change.pop("queue", None)
        left.append("queue")
    if link.loss_burst_packets != 1:
        left.append("loss_burst")
    return {RESTORE: True, **change}, left


def of_scenario(
    scenario: Scenario, links: Collection[str]
) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Returns `as_scenario` of each link that a lab and the scenario have. Raises ValueError without
    any. Pure."""
    both = [name for name in scenario.links if name in links]
    if not both:
        raise UnknownLinkError(
            f"{scenario.name} has none of the lab's links; it has {', '.join(scenario.links)}, "
            f"the lab has {', '.join(links)}"
        )
    return {name: as_scenario(scenario, name) for name in both}


def links_at(address: tuple[str, int]) -> list[str]:
    """Returns the names of a running lab's links. Raises RuntimeError without one."""
    try:
        answer = json.loads(exchanged(address, "GET", LAB)[0])
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unanswered(address, error) from None
    match answer:
        case {"links": dict(links)}:
            return list(links)
        case {"error": str()}:
            raise RuntimeError(sentence(answer))
    raise _no_lab(address)


def _flow(key: str, value: Any) -> str:
    if key in impairments.KEYS.values() and isinstance(value, str):
        return f"{{{value.strip().removeprefix('{').removesuffix('}')}}}"
    return json.dumps(value)


def change_of(command: Command) -> dict[str, Any]:
    """Returns a command's change as `command_of` reads it. Pure."""
    restored = {RESTORE: True} if command.restore else {}
    return restored | events.LIVE.write(command.event())


def lasting(standing: Command | None, command: Command) -> Command | None:
    """Merges a command into those that also hold for later runs. Pure."""
    if command.restore:
        standing, command = None, msgspec.structs.replace(command, restore=False)
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


class UnknownLinkError(LinklabError, ValueError):
    """The scenario has no such link. The message says which there are."""


def feasible(scenario: Scenario, command: Command, standing: Command | None = None) -> Command:
    """Returns the command as this scenario's links can execute it. Raises ValueError. Pure.

    `standing` is what earlier commands to the same link still do.
    """
    if command.next or command.pause is not None:
        return command
    if command.algorithm is not None:
        raise ValueError("an algorithm can only be the next one: the command needs next")
    if command.link not in scenario.links:
        raise UnknownLinkError(
            f"no link is called {command.link!r}{guess(command.link, scenario.links)}; "
            f"there are: {', '.join(scenario.links)}"
        )
    _require_fitting_jitter(scenario, command, standing)
    if impairments.impairs(command):
        changes = (command,) if standing is None else (standing, command)
        link = scenario.links[command.link]
        _require_fit((link, *changes), scenario.distributions, link.families)
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


def _require_fit(
    changes: Iterable[impairments.Impairing], names: Collection[str], families: Families
) -> None:
    """Raises ValueError if the impairments of the last change do not fit those before.

    `names` are the scenario's distributions, `families` those of the link's addresses.
    """
    stacked = list(changes)
    written = {
        key: impairments.TABLE.write(found)
        for direction, key in impairments.KEYS.items()
        if (found := impairments.of(stacked[-1], direction)) is not UNSET
    }
    try:
        where = YamlMapping("", compose(json.dumps(written), "", ""), "", keys_of(impairments.ROWS))
        impairments.check(where, stacked, names, families)
    except ScenarioError as error:
        raise _without_place(error) from None


def _without_place(error: ScenarioError) -> ValueError:
    """Returns the error of a text that is no file."""
    return ValueError(str(error).removeprefix(":1: "))


def in_words(command: Command, *, is_executed: bool = True) -> str:
    """Describes a command for people, and whether the lab has executed it. Pure."""
    if command.next:
        return f"on to {command.algorithm or 'the next algorithm'}"
    if command.pause is not None:
        return "no further download begins" if command.pause else "downloads go on"
    more = "" if is_executed else " (the lab has not applied it yet)"
    return f"{command.link}: {command.in_words()}{more}"


LAB: Final = "/lab"
"""The path of the lab. Its links are below."""

_MOST_BYTES = 1 << 20
"""The most bytes read of a response."""

_ANSWER_S = 10.0
"""The longest wait for a response. The lab itself waits up to `control.ANSWER_S` for a change."""


def send(address: tuple[str, int], command: Command, secret: str | None = None) -> str:
    """Sends a command to a live lab, and returns its answer in words, as `answer_to`."""
    done: str = answer_to(address, command, secret)["done"]
    return done


def answer_to(
    address: tuple[str, int], command: Command, secret: str | None = None
) -> dict[str, Any]:
    """Sends a command to a live lab, and returns its answer. Raises RuntimeError if that fails.

    `secret` is the lab's token, by default the one that is known for the address. It is not sent.
    """
    secret = secret or token.known(address) or ""
    asked = msgspec.json.encode(_body_of(command))
    path = f"{LAB}/links/{quote(command.link, safe='')}" if command.link else LAB
    try:
        match json.loads(exchanged(address, "GET", proof.PATH)[0]):
            case {"challenge": str(challenge)}:
                pass
            case _:
                raise _no_lab(address)
        signed = proof.signature(secret, f"PATCH {path}", challenge, asked)
        header = {proof.HEADER: f"{challenge}:{signed}"}
        text, mark = exchanged(address, "PATCH", path, asked, header)
        answer = json.loads(text)
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise _unanswered(address, error) from None
    match answer:
        case {"error": str()}:
            raise RuntimeError(sentence(answer))
        case {"done": str()} if proof.is_signed(mark, secret, proof.ANSWER, challenge, text):
            return dict(answer)
    raise _no_lab(address)


def sentence(problem: Mapping[str, Any]) -> str:
    """Returns a `Problem` of the HTTP API in a sentence. Pure."""
    field, allowed = problem.get("field"), problem.get("allowed")
    said = problem["error"] if field is None else f"{field}: {problem['error']}"
    return said if allowed is None else f"{said}; allowed: {allowed}"


def _body_of(command: Command) -> dict[str, Any]:
    if command.pause is not None:
        return {"paused": command.pause}
    return {"next": command.algorithm or ""} if command.next else change_of(command)


def _unanswered(address: tuple[str, int], error: Exception) -> RuntimeError:
    return RuntimeError(
        f"no live lab answers at {to_text(address)} ({error}): start one with `linklab live`, "
        "or name its address with --live"
    )


def _no_lab(address: tuple[str, int]) -> RuntimeError:
    return RuntimeError(
        f"what answers at {to_text(address)} is no live lab: name the address of one with --live"
    )


def exchanged(
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
