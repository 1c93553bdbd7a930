"""How links are drawn: colour and letter, told apart within a kind too. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from linklab.core.link_kinds import LinkKind


@dataclass(frozen=True, slots=True)
class LinkStyle:
    """A link's `colour`, and the `letter` with which a terminal draws it."""

    colour: str
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
        styles[name] = LinkStyle(kind.colours[numbers[kind.name]], letter)
        numbers[kind.name] += 1
    return styles
