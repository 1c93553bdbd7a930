"""Tests that the handbook's table of requests says what scenarios take."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from linklab import scenario
from linklab.scenario.settings import TABLE

PAGE: Final = Path(__file__).parents[1] / "handbook" / "how-to" / "say-it-in-a-scenario.md"
MOST_LINES: Final = 15

TEXT: Final = PAGE.read_text().partition("## Cannot be said yet")
ROWS: Final = re.findall(r"^\| (?!request|---)(.*?) \|.*\| (`.*`) \|$", TEXT[0], re.MULTILINE)
FILES: Final = {
    "measured.dist": "-8192 0 8192\n",
    "delays.csv": "t,rtt_ms,loss\n0,28,0\n1,33,0.1\n2,30,0\n",
    "rates.csv": "t,down_mbit\n0,5\n1,12\n",
}


def scenario_of(keys: str) -> str:
    """The scenario that a row's keys make, with what every scenario needs."""
    links = dict.fromkeys(("wifi", "lte"), "{…}")
    top = {"name": "mine", "payload": "{size: 20 MB}"}
    for key, value in re.findall(r"`([\w]+): (.*?)`", keys):
        (top if key in TABLE.keys.all else links)[key] = value
    lines = [f"{key}: {value}" for key, value in top.items()]
    lines += ["links:", *(f"  {name}: {value}" for name, value in links.items())]
    return "\n".join(lines).replace("…", "down: 33 Mbit/s, up: 11 Mbit/s, rtt: 44 ms")


@pytest.mark.parametrize(("request_", "keys"), ROWS, ids=[request for request, _ in ROWS])
def test_a_request_can_be_said(tmp_path: Path, request_: str, keys: str) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    text = scenario_of(keys)
    assert len(text.splitlines()) <= MOST_LINES
    assert "`" not in text
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    found = replace(scenario.find(str(file)), path=None)
    assert found != scenario.parse(scenario_of("")), "the keys change nothing"


def test_the_page_has_many_requests_and_all_rows_are_tested() -> None:
    rows = [line for line in TEXT[0].splitlines() if line.startswith("| ")]
    headings = sum(line.startswith("| request |") for line in rows)
    assert len(ROWS) == len(rows) - headings
    assert len(ROWS) > 50
    assert TEXT[2].count("\n| ") > 8


def test_the_example_is_a_scenario() -> None:
    example = re.search(r"^    name: mine\n(?:    .*\n)+", TEXT[0], re.MULTILINE)
    assert example is not None
    found = scenario.parse(re.sub("^    ", "", example[0], flags=re.MULTILINE))
    assert (len(found.links), len(found.events)) == (2, 1)
    assert len(example[0].splitlines()) <= MOST_LINES
