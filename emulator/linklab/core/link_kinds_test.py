import pytest

from linklab.core.link_kinds import LTE, WIFI, devices, in_order, link_name, link_title


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
