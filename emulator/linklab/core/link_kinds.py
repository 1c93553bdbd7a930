"""The kinds of links, such as Wi-Fi and LTE, and how links are called. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from linklab.core.shared_tables import LINK_KINDS

MAX_LINKS: Final = 8
"""Links of a scenario, at most."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")


class LinkKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of link: a row of `link_kinds.json`.

    `name` stands in scenarios, `title` is shown to people. `device` and a number from 0 name an
    interface of the lab's client. On hardware, `device_prefixes` begin the names of the kind's
    interfaces: systemd's, Qualcomm's, MediaTek's and Samsung's. `access` is the lab's node that
    holds a link's rate, `core` the node that holds its delay. `colours` are those of the kind's
    links in plots and dashboards, one after the other.
    """

    name: str
    title: str
    device: str
    device_prefixes: tuple[str, ...]
    access: str
    core: str
    colours: tuple[str, ...]


KINDS: Final = {
    kind.name: kind for kind in msgspec.json.decode(LINK_KINDS, type=tuple[LinkKind, ...])
}
"""Every kind, in the order in which links are listed everywhere. A link that is called like a kind
is of that kind."""

WIFI: Final = KINDS["wifi"]
LTE: Final = KINDS["lte"]
"""The kinds that models and publications' mechanisms tell apart."""


def link_name(text: str) -> str:
    """The name of a link, as it stands in scenarios, commands and figures. Raises ValueError.

    A kind's name is always allowed.
    """
    if text not in KINDS and not _NAME.fullmatch(text):
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


def kind_of(name: str, device: str) -> LinkKind | None:
    """The kind of a link on hardware, by its name, else by its device's name; None if neither tells."""
    if name in KINDS:
        return KINDS[name]
    kinds = KINDS.values()
    return next((kind for kind in kinds if device.startswith(kind.device_prefixes)), None)
