from itertools import combinations

import pytest

from linklab.core.link_kinds import KINDS, LTE, MAX_LINKS, WIFI, LinkKind
from linklab.report.link_styles import link_styles


def test_wifi_and_lte_look_as_they_always_did() -> None:
    wifi, lte = link_styles({"wifi": WIFI, "lte": LTE}).values()
    assert (wifi.colour, wifi.letter) == ("#5794F2", "w")
    assert (lte.colour, lte.letter) == ("#FF9830", "l")


def test_further_links_of_a_kind_have_another_colour_and_letter() -> None:
    styles = link_styles({"wifi": WIFI, "lte": LTE, "lte2": LTE, "ll": LTE})
    assert [one.letter for one in styles.values()] == ["w", "l", "t", "4"]
    assert styles["lte2"].colour != styles["lte"].colour


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_as_many_links_as_a_scenario_may_have_are_told_apart(kind: LinkKind) -> None:
    styles = list(link_styles({f"link{n}": kind for n in range(MAX_LINKS)}).values())
    for part in ("colour", "letter"):
        assert len({getattr(one, part) for one in styles}) == MAX_LINKS


def rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def test_colours_are_far_from_each_other() -> None:
    colours = [colour for kind in KINDS.values() for colour in kind.colours]
    for one, other in combinations(colours, 2):
        assert sum(abs(a - b) for a, b in zip(rgb(one), rgb(other), strict=True)) > 60
