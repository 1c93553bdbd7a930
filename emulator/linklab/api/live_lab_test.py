"""Tests that Python, Go and the page change the same of a link, in the same words."""

import inspect
import re

from linklab.api.live_lab import LabLink
from linklab.core.paths import REPOSITORY
from linklab.live import page_files
from linklab.live.link_command import CHANGES

GO = (REPOSITORY / "client" / "linklabtest" / "link.go").read_text()
SPECIAL = {"rtt": "RTT"}
"""Names that Go writes otherwise than with one capital letter."""


def in_python() -> dict[str, str]:
    """Returns what each change does, as Python's methods say."""
    methods = inspect.getmembers(LabLink, inspect.isfunction)
    return {
        name: inspect.cleandoc(method.__doc__ or "")
        for name, method in methods
        if not name.startswith("_")
    }


def in_go(name: str) -> str:
    """Returns what a change does, as Go's documentation says, in Python's form."""
    called = SPECIAL.get(name, name.capitalize())
    (comment,) = re.findall(rf"((?:^// .*\n)+)func (?:\(l \*Link\) )?{called}\(", GO, re.M)
    said = " ".join(line.removeprefix("// ") for line in comment.splitlines())
    words = said.removeprefix(f"{called} ")
    return re.sub(r'"([^"]*)"', r"`\1`", words[0].upper() + words[1:])


def test_python_changes_all_of_it() -> None:
    assert in_python().keys() == CHANGES.keys()


def test_go_changes_all_of_it() -> None:
    assert set(re.findall(r'change: "(\w+)"', GO)) == CHANGES.keys()


def test_both_say_what_a_change_does_in_the_same_words() -> None:
    """Go may add what its zero values mean."""
    for name, said in in_python().items():
        first = said.partition(".")[0]
        assert in_go(name).startswith(first), name


def test_the_page_has_a_control_for_each_value() -> None:
    script = (page_files.DIRECTORY / "quantities.js").read_text()
    controls = re.findall(r"^  (\w+): \{ label:", script, re.M)
    values = [name for name, what in CHANGES.items() if what.startswith("VALUE")]
    assert controls == values
