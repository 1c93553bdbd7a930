"""Defines link kinds, such as Wi-Fi, LTE and 5G, and the names of links. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from linklab.core.shared_tables import LINK_KINDS

MAX_LINKS: Final = 8
"""The largest number of links in a scenario."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")


class LinkKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link kind: a row of `link_kinds.json`.

    Attributes:
        name: its name in scenarios.
        title: its name for people.
        device: with a number from 0, the name of an interface of the lab's client.
        device_prefixes: prefixes of interface names on hardware: systemd's, Qualcomm's, MediaTek's
            and Samsung's.
        access: the lab's node that shapes the rate.
        core: the lab's node that adds the delay.
        colours: colours of the kind's links in plots and dashboards, in order.
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
"""All kinds, in the order in which links are listed. A link named like a kind is of that kind."""

WIFI: Final = KINDS["wifi"]
LTE: Final = KINDS["lte"]
FIVE_G: Final = KINDS["5g"]
SATELLITE: Final = KINDS["satellite"]
FIXED: Final = KINDS["fixed"]
"""The kinds between which models and published mechanisms distinguish."""

OTHER: Final = KINDS["other"]
"""The kind of a link that is none of these. It may have every model."""


def link_name(text: str) -> str:
    """Checks and returns the name of a link. A kind's name is always allowed.

    Raises ValueError.
    """
    if text not in KINDS and not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name of a link; "
            "allowed: up to 12 of a-z and 0-9, a letter first, such as 'lte2'"
        )
    return text


def link_title(name: str) -> str:
    """Returns a link's name for people: the title of its kind if named like it, else its name."""
    return KINDS[name].title if name in KINDS else name


def either(words: Iterable[str]) -> str:
    """Returns words as alternatives: "a, b or c"."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def in_order(kinds: Mapping[str, LinkKind]) -> list[str]:
    """Returns the names of links, sorted by kind. Links of a kind keep their order."""
    order = list(KINDS)
    return sorted(kinds, key=lambda name: order.index(kinds[name].name))


def devices(kinds: Iterable[LinkKind]) -> list[str]:
    """Returns the client's device for each link, numbered by kind: wlan0, rmnet0, rmnet1."""
    numbers = dict.fromkeys(KINDS, 0)
    named = []
    for kind in kinds:
        named.append(f"{kind.device}{numbers[kind.name]}")
        numbers[kind.name] += 1
    return named


def kind_of(name: str, device: str) -> LinkKind | None:
    """Returns the kind of a link on hardware, by its name or its device's name; None if unknown."""
    if name in KINDS:
        return KINDS[name]
    kinds = KINDS.values()
    return next((kind for kind in kinds if device.startswith(kind.device_prefixes)), None)
