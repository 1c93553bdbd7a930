"""How links are drawn: colour, hatching and letter, told apart within a kind too. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from linklab.core.link_kinds import LTE, WIFI, LinkKind

COLOURS: Final = {
    WIFI.name: (
        "#5794F2",
        "#1F3D7A",
        "#2FB5C7",
        "#8E5FD8",
        "#0B7A6B",
        "#A9C6F5",
        "#4B0082",
        "#6B7F99",
    ),
    LTE.name: (
        "#FF9830",
        "#A8320C",
        "#D9B400",
        "#E0527A",
        "#6E430F",
        "#F5C9A9",
        "#7A1038",
        "#A8895B",
    ),
}
"""The colours of a scenario's links of each kind in plots and dashboards, one after the other."""

_HATCHES: Final = ("//", "\\\\", "||", "--", "xx", "++", "..", "oo")


@dataclass(frozen=True, slots=True)
class LinkStyle:
    """A link's `colour`, the `hatch` (of Matplotlib) of times in which it carries nothing, and the
    `letter` with which a terminal draws it."""

    colour: str
    hatch: str
    letter: str


def link_styles(kinds: Mapping[str, LinkKind]) -> dict[str, LinkStyle]:
    """A style for each link, no two alike. A kind's first link has the kind's first colour; the
    letter is the first of the link's name that no link before it has, else a number."""
    numbers: Counter[str] = Counter()
    styles: dict[str, LinkStyle] = {}
    letters: set[str] = set()
    for index, (name, kind) in enumerate(kinds.items()):
        letter = next((one for one in name if one not in letters), str(index + 1))
        letters.add(letter)
        styles[name] = LinkStyle(COLOURS[kind.name][numbers[kind.name]], _HATCHES[index], letter)
        numbers[kind.name] += 1
    return styles
