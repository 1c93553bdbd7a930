"""Tests that Python, Go, HTTP and the page change the same of a link, in the same words."""

import inspect
import re

import msgspec
import pytest

from linklab import scenario
from linklab.api.http import messages
from linklab.api.live_lab import LabLink
from linklab.core.link_state import DIRECTIONS
from linklab.core.paths import REPOSITORY
from linklab.metrics.about import Setting
from linklab.metrics.run import RunLabels, RunMetrics
from linklab.models import impairments
from linklab.realtime import impairing, page_files
from linklab.realtime.link_command import CHANGES
from linklab.realtime.view import Cursor, PageView

GO = (REPOSITORY / "client" / "linklabtest" / "link.go").read_text()
SMALL = "name: small\npayload: {size: 1 MB}\nlinks: {wifi: {down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms}}\n"
SPECIAL = {"rtt": "RTT", "impair_down": "ImpairDown", "impair_up": "ImpairUp"}
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
    values = [
        name
        for name, what in CHANGES.items()
        if what.startswith("VALUE") and name not in impairments.KEYS.values()
    ]
    assert controls == values


def test_every_impairment_is_known_everywhere() -> None:
    """The command, Python and Go take the text of scenarios. HTTP and the page have a field for each."""
    table = impairments.TABLE.keys.all
    for key in impairments.KEYS.values():
        assert key in CHANGES
        assert key in {row.key for row in messages.ROWS}
    for direction in DIRECTIONS:
        with pytest.raises(ValueError, match=f"allowed: {', '.join(table)}$"):
            impairing.parse(direction, "nothing: 1")
    fields = msgspec.structs.fields(messages.LinkImpairments)
    assert tuple(field.encode_name for field in fields) == table
    lab = scenario.parse(SMALL)
    view = PageView(
        1,
        "",
        "",
        1,
        lab,
        RunMetrics(
            RunLabels("r", "s", "1 MB", "", "1", "real"),
            ("wifi",),
            1,
            Setting("guest", "r1", 2, 1.0),
        ),
    )
    assert tuple(view.since(Cursor())[1]["run"]["impairments"]) == table
