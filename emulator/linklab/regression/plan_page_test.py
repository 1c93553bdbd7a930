"""Tests that the page of suite and campaign files has all their keys, and that its examples can be
read."""

import re
from pathlib import Path

import pytest

from linklab.regression import suite
from linklab.regression.figures import FIGURES, parse_bound
from linklab.runs import matrix, plan_file
from linklab.schema.mapping import Keys

PAGE = Path(__file__).parents[2] / "handbook" / "reference" / "suite-and-campaign-files.md"
TEXT = PAGE.read_text()


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("key of a suite", suite._ROOT),
        ("key in `scenarios`", suite._ENTRY),
        ("bound", Keys((), suite._BOUNDS)),
        ("key in `cost`", suite._COST),
        ("key in `programs`", suite._PROGRAM),
        ("key in `exec`", plan_file._EXEC),
        ("key in `server`", plan_file._SERVER),
        ("key of a campaign", matrix._ROOT),
        ("key in `matrices`", matrix._MATRIX),
        ("key in `variants`", matrix._VARIANT),
    ],
)
def test_a_table_has_the_keys_of_the_code(heading: str, keys: Keys) -> None:
    table = TEXT.partition(f"| {heading} |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    needed = {name: "| needed |" in row for row in rows for name in _names(row)}
    assert needed == {
        **dict.fromkeys(keys.needed, True),
        **dict.fromkeys(keys.optional, False),
    }


def _names(row: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", row.split("|")[1])


def test_exceptions_have_names_of_cells() -> None:
    table = TEXT.partition("| key in `exceptions` |")[2].partition("\n\n")[0]
    assert {"scenario", "algorithm", "seed"} == set(re.findall(r"`([a-z]+)`", table))


def test_the_bounds_that_hold_by_default_are_those_of_the_code() -> None:
    table = TEXT.partition("| bound | default |")[2].partition("\n\n")[0]
    said = [line.split("|")[2].strip() for line in table.splitlines()[2:]]
    of_bound = {one.bound: one for one in FIGURES}
    assert [
        parse_bound(of_bound[key], text)
        for key, text in zip(suite.DEFAULT_BOUNDS, said, strict=True)
    ] == [*suite.DEFAULT_BOUNDS.values()]


def test_the_examples_can_be_read(tmp_path: Path) -> None:
    first, second = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.M | re.S)
    read = suite.parse(first, tmp_path / "mine.yaml")
    assert len(read.planned) == 6
    assert len(matrix.expand(second, tmp_path / "loss.yaml").requests) == 80
