from pathlib import Path

from linklab.core.placeholders import filled


def test_names_are_filled_wherever_they_stand() -> None:
    values = {"url": "https://h/f", "output": Path("/o"), "port": 443}
    assert filled("a{url}b{output}{port}", values) == "ahttps://h/fb/o443"


def test_what_has_no_value_stays() -> None:
    assert filled("%{range}i {} {other} ${HOME} {url", {"url": "x"}) == (
        "%{range}i {} {other} ${HOME} {url"
    )


def test_a_value_is_not_looked_through() -> None:
    assert filled("{a}{b}", {"a": "{b}", "b": "\\1"}) == "{b}\\1"
