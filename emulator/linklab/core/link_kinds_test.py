from itertools import permutations

import pytest

from linklab.core.link_kinds import (
    FIVE_G,
    FIXED,
    KINDS,
    LTE,
    MAX_LINKS,
    WIFI,
    LinkKind,
    devices,
    either,
    in_order,
    kind_of,
    link_name,
    link_title,
)

LONGEST_INTERFACE = 15
"""Of Linux, in bytes."""


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_row_fits_the_lab(kind: LinkKind) -> None:
    assert link_name(kind.name) == kind.name
    last = MAX_LINKS - 1
    for node in (kind.access, kind.core):
        assert len(f"{node}-{last}-{kind.device}{last}") <= LONGEST_INTERFACE
    assert len(f"{kind.access}-{last}-{kind.core}-{last}") <= LONGEST_INTERFACE
    assert len(f"server-{kind.core}-{last}") <= LONGEST_INTERFACE
    assert len(set(kind.colours)) >= MAX_LINKS
    assert kind_of("x", f"{kind.device}0") is kind


def test_rows_are_told_apart() -> None:
    """Dashboards know a link's kind by the beginning of the link's name."""
    for one, other in permutations(KINDS.values(), 2):
        assert not other.name.startswith(one.name)
        assert not {one.access, one.core, one.device} & {other.access, other.core, other.device}
        assert not set(one.device_prefixes) & set(other.device_prefixes)


def test_kinds_of_links_on_hardware() -> None:
    for name, device, kind in (
        ("wifi", "eth0", WIFI),
        ("lte", "wlan0", LTE),
        ("a", "wlp3s0", WIFI),
        ("a", "wwan0", LTE),
        ("a", "enp3s0", FIXED),
        ("a", "eth0", FIXED),
        ("5g", "rmnet0", FIVE_G),
        ("lte2", "usb0", None),
    ):
        assert kind_of(name, device) is kind


def test_words_are_alternatives() -> None:
    assert either(["a"]) == "a"
    assert either(["a", "b", "c"]) == "a, b or c"


def test_devices_are_numbered_by_kind() -> None:
    assert devices([WIFI, LTE]) == ["wlan0", "rmnet0"]
    assert devices([WIFI, LTE, WIFI, LTE, LTE]) == ["wlan0", "rmnet0", "wlan1", "rmnet1", "rmnet2"]


def test_links_stand_by_kind_and_in_a_kind_as_given() -> None:
    assert in_order({"lte": LTE, "wifi": WIFI}) == ["wifi", "lte"]
    assert in_order({"b": LTE, "x": WIFI, "a": LTE}) == ["x", "b", "a"]


def test_a_link_called_like_a_kind_has_its_title() -> None:
    assert [link_title(name) for name in ("wifi", "lte", "lte2")] == ["Wi-Fi", "LTE", "lte2"]


@pytest.mark.parametrize("name", ["wifi", "lte2", "a", "a23456789012"])
def test_names_of_links(name: str) -> None:
    assert link_name(name) == name


@pytest.mark.parametrize("name", ["", "2g", "LTE", "lte-2", "lte_2", "a234567890123", "ł"])
def test_what_is_no_name_of_a_link(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a link; allowed: up to 12 of a-z and 0-9"):
        link_name(name)
