"""The kinds of links: what follows from a link being Wi-Fi or LTE, and how links are called. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

MAX_LINKS: Final = 8
"""Links of a scenario, at most."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")


@dataclass(frozen=True, slots=True)
class LinkKind:
    """One kind. `name` stands in scenarios, `title` is shown to people.

    `device` and a number from 0 is an interface of the client, as phones call them. `access` is
    the lab's node that holds a link's rate, `core` the one that holds its delay.
    """

    name: str
    title: str
    device: str
    access: str
    core: str


WIFI: Final = LinkKind(
    name="wifi",
    title="Wi-Fi",
    device="wlan",
    access="ap",
    core="isp",
)
LTE: Final = LinkKind(
    name="lte",
    title="LTE",
    device="rmnet",
    access="enb",
    core="epc",
)

KINDS: Final = {kind.name: kind for kind in (WIFI, LTE)}
"""Every kind, in the order in which links are listed everywhere. A link that is called like a kind
is of that kind."""


def link_name(text: str) -> str:
    """The name of a link, as it stands in scenarios, commands and figures. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name of a link; "
            "allowed: up to 12 of a-z and 0-9, a letter first, such as 'lte2'"
        )
    return text


def link_title(name: str) -> str:
    """A link's name as people read it: the title of its kind, or the name that it was given."""
    return KINDS[name].title if name in KINDS else name


def in_order(kinds: Mapping[str, LinkKind]) -> list[str]:
    """The names of links by kind, those of a kind in the order given."""
    order = list(KINDS)
    return sorted(kinds, key=lambda name: order.index(kinds[name].name))


def devices(kinds: Iterable[LinkKind]) -> list[str]:
    """The client's device for each of a scenario's links, numbered by kind: wlan0, rmnet0, rmnet1."""
    numbers = dict.fromkeys(KINDS, 0)
    named = []
    for kind in kinds:
        named.append(f"{kind.device}{numbers[kind.name]}")
        numbers[kind.name] += 1
    return named
