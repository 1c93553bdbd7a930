"""Tests document.py: YAML that expands beyond the limits is refused quickly."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from yaml.nodes import MappingNode, Node, ScalarNode

from linklab import scenario
from linklab.regression import baseline, suite
from linklab.regression.baseline import BaselineError
from linklab.runs import matrix
from linklab.scenario import ScenarioError
from linklab.schema import document
from linklab.schema.document import LIMITS, MAX_DEPTH, MAX_SCALAR, Limits

READERS: dict[str, Callable[[str], object]] = {
    "scenario": lambda text: scenario.parse(text, "x.yaml"),
    "scenario of a run": lambda text: scenario.parse(text, "x.yaml", of_a_run=True),
    "campaign": lambda text: matrix.expand(text, Path("x.yaml")),
    "suite": lambda text: suite.parse(text, Path("x.yaml")),
    "baseline": lambda text: baseline.parse(text, "x.yaml"),
}


SMALL = """name: x
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
"""


def levels(first: str, form: str) -> str:
    """Each level holds the one before it ten times: 10^14 values."""
    letters = "abcdefghijklmno"
    made = [f"&a {first}"]
    for before, letter in pairwise(letters):
        made.append(f"&{letter} {form.format(', '.join([f'*{before}'] * 10))}")
    return ", ".join(made)


MERGED = levels("{seed: 1}", "{{<<: [{}]}}")
MERGES = SMALL.replace("size: 1 MB", f"size: 1 MB, <<: [{MERGED}]")
LAUGHS = f"name: x\nlinks: [{levels('[lol]', '[{}]')}]\n"


def refusal(reader: str, text: str) -> str:
    with pytest.raises((ScenarioError, BaselineError)) as caught:
        READERS[reader](text)
    return str(caught.value)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bomb", [MERGES, LAUGHS], ids=["merges", "laughs"])
def test_aliases_of_aliases_are_counted_before_anybody_follows_them(reader: str, bomb: str) -> None:
    assert len(bomb) < 1000
    said = refusal(reader, bomb)
    assert said.startswith("x.yaml:2: with its aliases the file stands for more than ")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_an_error_and_no_crash(reader: str, opening: str) -> None:
    said = refusal(reader, opening * 100_000)
    assert f"is nested too deeply; allowed: {MAX_DEPTH} levels" in said or "not valid YAML" in said


@pytest.mark.parametrize("reader", READERS)
def test_what_holds_itself_is_refused(reader: str) -> None:
    for text in ("name: x\ntcp: &t {<<: *t}\n", "name: x\nlinks: &l [[*l]]\n"):
        assert "is named within what it stands for" in refusal(reader, text)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: " + "x" * (MAX_SCALAR + 1), "x.yaml:1: a value of 20001 characters"),
        ("name: x\n" + "#\n" * LIMITS.size_bytes, "x.yaml: is too large; allowed: "),
        ("name: x\nlinks: [" + "1," * 210_000 + "]", "with its aliases the file stands for more"),
        ("name: x\nlinks: *a\n", "x.yaml:2: not valid YAML: found undefined alias 'a'"),
    ],
    ids=["a giant value", "a giant file", "many values", "an alias of nothing"],
)
def test_limits(reader: str, text: str, said: str) -> None:
    assert said in refusal(reader, text)


def test_aliases_stay_useful(tmp_path: Path) -> None:
    root = document.compose("a: &a {b: 1}\nc: [*a, *a]\nd: {<<: *a}\n", "x", "a")
    assert len(root.value) == 3
    assert document.plain("a: &a {b: 1}\nc: [*a, *a]\n", "x", LIMITS) == {
        "a": {"b": "1"},
        "c": [{"b": "1"}, {"b": "1"}],
    }


@pytest.mark.parametrize("name", scenario.names_in())
def test_what_linklab_writes_is_read_the_same_by_both_parsers(name: str) -> None:
    text = scenario.to_yaml(scenario.find(name))

    def told(node: Node) -> object:
        inner = node.value
        if not isinstance(node, ScalarNode):
            pairs = isinstance(node, MappingNode)
            inner = [[told(one) for one in pair] if pairs else told(pair) for pair in inner]
        return node.tag, node.start_mark.line, inner

    roots = [document.compose(text, "x", "a", canonical=canonical) for canonical in (False, True)]
    assert told(roots[0]) == told(roots[1])


def test_a_file_is_not_read_beyond_its_limit(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="^zero: is too large; allowed: 1000 bytes$"):
        document.read(Path("/dev/zero"), "zero", Limits(1000, 10))
    with pytest.raises(ScenarioError, match="^d: cannot be read: Is a directory$"):
        document.read(tmp_path, "d")
    with pytest.raises(ScenarioError, match="cannot be read"):
        scenario.load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "value", ["9" * 5_000 + " bit/s", "1" + " " * 19_000 + "s x", "1e400 bit/s", "0x" + "f" * 9000]
)
def test_giant_numbers_are_refused_at_once(value: str) -> None:
    text = SMALL.replace("60 Mbit/s", f"'{value}'", 1)
    said = refusal("scenario", text)
    assert said.startswith("x.yaml:4: links.wifi.down: ") and "allowed: a rate such as" in said
    assert len(said) < 1000
    refusal("scenario", SMALL.replace("1 MB", f"1 MB, seed: '{value}'", 1))


def test_products_of_lists_are_counted_before_they_are_made() -> None:
    seeds, names = ", ".join(map(str, range(6_000))), [f"p{n}" for n in range(3_000)]
    programs = "".join(f"  - {{name: {name}, command: x}}\n" for name in names)
    algorithms = f"algorithms: [{', '.join(names)}]\n"
    said = refusal(
        "campaign",
        f"name: x\nexec:\n{programs}matrices:\n- scenarios: [ls]\n"
        f"  seeds: [{seeds}]\n  {algorithms}",
    )
    assert "more than 100000 runs" in said
    said = refusal(
        "suite",
        f"name: x\nexec:\n{programs}{algorithms}seeds: [{seeds}]\nscenarios: [{{scenario: ls}}]\n",
    )
    assert "more than 100000 downloads" in said
