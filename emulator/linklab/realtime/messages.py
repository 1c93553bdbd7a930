"""Defines what requests and answers of the HTTP API hold.

The OpenAPI document is made of these types. A change of a link has the keys, units and limits of an
event in a scenario file, because its fields are made of the events' table.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from linklab.core.bounded import Name, Seed
from linklab.core.errors import LinklabError
from linklab.lab.player.control import Command
from linklab.models import events, impairments
from linklab.realtime import link_command
from linklab.schema.mapping import guess
from linklab.schema.quantities import BOOLEAN
from linklab.schema.rows import Row

T = TypeVar("T")


class StartLab(Struct, frozen=True, forbid_unknown_fields=True):
    """The lab that is to be started."""

    scenario: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000,
            description="a name of `GET /scenarios`, or the path of a YAML file where the server runs",
        ),
    ]
    origins: Annotated[
        list[Name],
        Meta(
            max_length=100,
            description="URLs of your servers that are put behind the links, as the server of this "
            "API reaches them",
        ),
    ] = []
    outside: Annotated[
        bool,
        Meta(description="whether the lab reaches all that the server reaches, by TCP and UDP"),
    ] = False
    seed: Annotated[
        Seed, Meta(description="the seed of everything random, 0 to 9223372036854775807")
    ] = 1


ROWS: Final = events.LIVE.flat
"""The keys of an event that a running lab can execute: all but its moment and its link."""


def _field(row: Row) -> tuple[str, Any, Any]:
    if row.value is impairments.TABLE:
        return (
            row.attribute,
            Annotated[LinkImpairments, Meta(description=row.about)] | UnsetType,
            UNSET,
        )
    kind = bool if row.value is BOOLEAN else Name
    about = Meta(description=f"{row.about}; allowed: {row.value.allowed}")
    return row.attribute, Annotated[kind, about] | UnsetType, UNSET


def _struct(name: str, rows: tuple[Row, ...], about: str, *more: tuple[str, Any, Any]) -> Any:
    """Makes a type of a table's rows."""
    return msgspec.defstruct(
        name,
        [*map(_field, rows), *more],
        module=__name__,
        namespace={"__doc__": about},
        frozen=True,
        forbid_unknown_fields=True,
        rename={row.attribute: row.key for row in rows},
    )


LinkImpairments = _struct(
    "LinkImpairments",
    impairments.TABLE.flat,
    "Impairments of one direction of a link. What they leave out stays as it is.",
)

LinkChange = _struct(
    "LinkChange",
    ROWS,
    "A change of a link. What it leaves out stays as it is.",
    (
        link_command.RESTORE,
        Annotated[
            bool,
            Meta(description="the link becomes as the scenario says, before what other fields say"),
        ],
        False,
    ),
)


class ScenarioNames(Struct, frozen=True):
    """The scenarios that ship with linklab."""

    scenarios: list[str]


class Link(Struct, frozen=True):
    """What a link is now, in the units of scenario files."""

    proxy_port: Annotated[
        int | None, Meta(description="of the HTTP and SOCKS5 proxy over this link alone")
    ]
    carrier: Literal["up", "down"]
    outage: Annotated[bool, Meta(description="whether all packets are lost")]
    down: Annotated[str, Meta(description="the downlink's rate")]
    up: Annotated[str, Meta(description="the uplink's rate")]
    rtt: str
    jitter: str
    loss: str
    queue: str
    impair_down: Annotated[dict[str, str], Meta(description="the downlink's impairments")]
    impair_up: Annotated[dict[str, str], Meta(description="the uplink's impairments")]
    access_point: str | None
    by_hand: Annotated[list[str], Meta(description="what changes of the link still do")]
    bytes: Annotated[
        int,
        Meta(
            description="bytes that came over the link since the lab's start, with all headers, at "
            "the newest sample: there are two a second, or as the scenario's `sample` says"
        ),
    ] = 0
    sent_bytes: Annotated[int, Meta(description="the same of bytes that were sent")] = 0
    done: Annotated[str, Meta(description="of an answer to a change: the change in words")] = ""


class LabChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the whole lab."""

    next: Annotated[
        Name | UnsetType,
        Meta(description="the algorithm to go on with, or empty text for the next one"),
    ] = UNSET
    paused: Annotated[bool | UnsetType, Meta(description="whether no further download begins")] = (
        UNSET
    )
    restore: Annotated[
        bool,
        Meta(
            description="true: the lab is as at the scenario's start. Links, events, models and queues "
            "begin anew, changes end, and so do all connections over the links"
        ),
    ] = False

    def command(self) -> Command:
        """Returns the command. Raises RefusedError if there is none."""
        if self.restore:
            return Command(restore=True)
        if self.paused is not UNSET:
            return Command(pause=self.paused)
        if self.next is UNSET:
            raise RefusedError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "changes nothing", None, "next, paused or restore"
            )
        return Command(next=True, algorithm=self.next or None)


class Done(Struct, frozen=True):
    """What a change of the lab did."""

    done: Annotated[str, Meta(description="the change in words")]
    stays: Annotated[
        list[str], Meta(description="what a restored lab cannot set back, in words")
    ] = []


class LabStatus(Struct, frozen=True):
    """The lab. Only a running one has links and proxies."""

    state: Literal["starting", "running", "stopping"]
    scenario: str
    seed: int
    time_s: Annotated[float, Meta(description="seconds since the scenario's start")] = 0.0
    keeps_up: Annotated[
        bool, Meta(description="whether the machine is fast enough for these links")
    ] = True
    proxy_port: Annotated[
        int | None, Meta(description="of the HTTP and SOCKS5 proxy over all links")
    ] = None
    origins: Annotated[list[str], Meta(description="your servers' URLs behind the links")] = []
    links: dict[str, Link] = {}


class Problem(Struct, frozen=True, omit_defaults=True):
    """Why a request is refused."""

    error: Annotated[str, Meta(description="what is wrong")]
    field: Annotated[str | None, Meta(description="the field of the request that is wrong")] = None
    allowed: Annotated[str | None, Meta(description="what is allowed instead")] = None


class RefusedError(LinklabError):
    """A request is refused. `status` is the answer's, `problem` its content."""

    def __init__(
        self, status: HTTPStatus, error: str, field: str | None = None, allowed: str | None = None
    ) -> None:
        super().__init__(error)
        self.status = status
        self.problem = Problem(error, field, allowed)


def refused(status: HTTPStatus, error: object, field: str | None = None) -> RefusedError:
    """Returns a refusal of a text such as "'5' has no unit; allowed: a rate"."""
    wrong, _, allowed = str(error).partition("; allowed: ")
    return RefusedError(status, wrong, field, allowed or None)


def decoded(body: bytes, kind: type[T]) -> T:
    """Reads a request's body. Raises RefusedError if it is no such JSON."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), kind) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RefusedError(
            HTTPStatus.BAD_REQUEST, str(error), None, f"a JSON object with {_fields_of(kind)}"
        ) from None


def command_of(link: str, change: Any) -> Command:
    """Returns a LinkChange as the lab's command. Raises RefusedError for a value that is not
    allowed."""
    try:
        return link_command.command_of(link, msgspec.to_builtins(change))
    except ValueError as error:
        placed = _FIELD.match(str(error))
        field, why = placed.groups() if placed else (None, error)
        raise refused(HTTPStatus.UNPROCESSABLE_ENTITY, why, field) from None


_FIELD: Final = re.compile(r"([a-z_.]+): (.*)", re.S)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.S)
_MISSING: Final = re.compile(r"Object missing required field `(.*?)`", re.S)
_PLACE: Final = re.compile(r"(.*) - at `\$\.?([\w.]*).*`", re.S)


def _invalid(text: str, kind: type[Any]) -> RefusedError:
    """Returns msgspec's error as a refusal."""
    status = HTTPStatus.BAD_REQUEST
    if unknown := _UNKNOWN.match(text):
        names = list(_properties(kind, unknown[2] or ""))
        error = f"no field is called {unknown[1]!r}{guess(unknown[1], names)}"
        field = ".".join(filter(None, (unknown[2], unknown[1])))
        return RefusedError(status, error, field, ", ".join(names))
    if missing := _MISSING.match(text):
        return RefusedError(status, "is missing", missing[1], _about(kind, missing[1]))
    if placed := _PLACE.match(text):
        return RefusedError(status, placed[1], placed[2] or None, _about(kind, placed[2]))
    return RefusedError(status, text, None, f"a JSON object with {_fields_of(kind)}")


def _fields_of(kind: type[Any]) -> str:
    return f"the fields {', '.join(_properties(kind, ''))}"


def _about(kind: type[Any], field: str) -> str | None:
    """Returns what is allowed for a field, None if there is no such field."""
    above, _, name = field.rpartition(".")
    found = _properties(kind, above).get(name, {}).get("description")
    return None if found is None else str(found).rpartition("; allowed: ")[2]


def _properties(kind: type[Any], field: str) -> dict[str, Any]:
    """Returns the schemas of a type's fields, or of the fields of one of its fields."""
    types = msgspec.json.schema(kind)["$defs"]
    found: dict[str, Any] = types[kind.__name__]["properties"]
    if field:
        inner = found[field]
        reference = inner.get("$ref") or inner["allOf" if "allOf" in inner else "anyOf"][0]["$ref"]
        found = types[reference.rpartition("/")[2]]["properties"]
    return found


def lab_of(status: dict[str, Any]) -> LabStatus:
    """Returns an open lab from its status (`LiveLab.status`). Pure."""
    if not status["ready"]:
        return LabStatus("starting", status["scenario"], status["seed"])
    now = status["now"]
    ports = {name: int(url.rpartition(":")[2]) for name, url in status["proxies"].items()}
    return LabStatus(
        state="running",
        scenario=status["scenario"],
        seed=status["seed"],
        time_s=now["t_s"],
        keeps_up=now["keeps_up"],
        proxy_port=ports.get(""),
        origins=status["origins"],
        links={name: _link(link, ports.get(name)) for name, link in now["links"].items()},
    )


def _link(now: dict[str, Any], proxy_port: int | None) -> Link:
    words: dict[str, Any] = {name: text for name, (_, text) in now["values"].items()}
    return Link(
        proxy_port=proxy_port,
        carrier="up" if now["up"] else "down",
        outage=now["out"],
        **words,
        **now["impaired"],
        access_point=now["access_point"] or None,
        by_hand=now["by_hand"],
        bytes=now["bytes"]["down"],
        sent_bytes=now["bytes"]["up"],
    )
