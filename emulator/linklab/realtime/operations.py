"""Lists the operations of the HTTP API, from which server and OpenAPI document are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from linklab.realtime.link_command import LAB
from linklab.realtime.messages import (
    Done,
    LabChange,
    LabStatus,
    Link,
    LinkChange,
    ScenarioNames,
    StartLab,
)

_GUARDED: Final = {HTTPStatus.FORBIDDEN: "no token, or a page of another site asks"}
_WITH_BODY: Final = {
    **_GUARDED,
    HTTPStatus.BAD_REQUEST: "the body is no such JSON",
    HTTPStatus.LENGTH_REQUIRED: "the request does not say how long its body is",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the body has more than 4 kB",
}
_NO_LAB: Final = {HTTPStatus.NOT_FOUND: "there is no lab"}
_NOT_RUNNING: Final = {HTTPStatus.CONFLICT: "the lab is not open yet, or no longer"}


@dataclass(frozen=True)
class Operation:
    """An operation: how it is asked for, what it does, and what it answers.

    Attributes:
        asks: the type of the request's body, if it has one.
        says: the type of the answer's body, if it has one.
        success: the status of the answer.
        failures: the other statuses, and what they mean.
        example: a body.
    """

    method: str
    path: str
    name: str
    does: str
    says: Any = None
    asks: Any = None
    success: HTTPStatus = HTTPStatus.OK
    failures: Mapping[HTTPStatus, str] = field(default_factory=dict)
    example: Any = None

    @property
    def changes(self) -> bool:
        """Whether the operation needs the token."""
        return self.method != "GET"


OPERATIONS: Final = (
    Operation(
        "GET",
        "/scenarios",
        "list_scenarios",
        "Lists the scenarios that ship with linklab.",
        says=ScenarioNames,
        failures={HTTPStatus.FORBIDDEN: "the host name is not the server's"},
    ),
    Operation(
        "POST",
        LAB,
        "start_lab",
        "Starts a lab on the real clock. Answers when its links have their first state, which takes "
        "seconds. There is one lab at a time.",
        asks=StartLab,
        says=LabStatus,
        success=HTTPStatus.CREATED,
        failures=_WITH_BODY
        | {
            HTTPStatus.CONFLICT: "there is a lab already, or it was stopped while it started",
            HTTPStatus.UNPROCESSABLE_ENTITY: "there can be no such lab",
            HTTPStatus.SERVICE_UNAVAILABLE: "the lab did not start",
        },
        example={"scenario": "wifi-gone"},
    ),
    Operation(
        "GET",
        LAB,
        "show_lab",
        "Shows the lab and what its links are now.",
        says=LabStatus,
        failures={HTTPStatus.FORBIDDEN: "the host name is not the server's"} | _NO_LAB,
    ),
    Operation(
        "PATCH",
        f"{LAB}/links/{{name}}",
        "change_link",
        "Changes a link. Answers when the lab has applied the change. It lasts until the next one, or "
        "for the time in `for`.",
        asks=LinkChange,
        says=Link,
        failures=_WITH_BODY
        | {
            HTTPStatus.NOT_FOUND: "there is no lab, or no such link",
            HTTPStatus.UNPROCESSABLE_ENTITY: "the link cannot become so",
        }
        | _NOT_RUNNING,
        example={"down": "2 Mbit/s", "rtt": "80 ms", "for": "3 s"},
    ),
    Operation(
        "PATCH",
        LAB,
        "change_lab",
        "Sets the lab back to the scenario's start. Where `linklab live` downloads by itself, it does "
        "so by a new download. There it also goes on with another algorithm, or pauses.",
        asks=LabChange,
        says=Done,
        failures=_WITH_BODY
        | _NO_LAB
        | _NOT_RUNNING
        | {
            HTTPStatus.UNPROCESSABLE_ENTITY: "this lab cannot do it",
            HTTPStatus.SERVICE_UNAVAILABLE: "the lab was not set back in time",
        },
        example={"restore": True},
    ),
    Operation(
        "DELETE",
        LAB,
        "stop_lab",
        "Stops the lab, also while it starts. Answers when it has ended.",
        success=HTTPStatus.NO_CONTENT,
        failures=_GUARDED | _NO_LAB | {HTTPStatus.CONFLICT: "it is a shell's, which ends it"},
    ),
)

_PATHS: Final = {
    path: re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)))
    for path in {one.path for one in OPERATIONS}
}


def found(path: str) -> tuple[dict[str, Operation], dict[str, str]]:
    """Returns the operations of a request's path by method, and the path's variables."""
    for template, form in _PATHS.items():
        if match := form.fullmatch(path):
            of_path = {one.method: one for one in OPERATIONS if one.path == template}
            return of_path, {name: unquote(value) for name, value in match.groupdict().items()}
    return {}, {}
