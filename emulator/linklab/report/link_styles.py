"""Chooses a colour and a letter for each link, different even within a kind. Pure."""

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
    """Chooses a style for each link, no two alike. A kind's first link gets the kind's first
    colour. The letter is the first one of the link's name that is still free, else a number."""
    numbers: Counter[str] = Counter()
    styles: dict[str, LinkStyle] = {}
    letters: set[str] = set()
    for index, (name, kind) in enumerate(kinds.items()):
        letter = next((one for one in name if one not in letters), str(index + 1))
        letters.add(letter)
        styles[name] = LinkStyle(kind.colours[numbers[kind.name]], letter)
        numbers[kind.name] += 1
    return styles
