"""Tests which statements are told to depend on what a publication leaves open."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yaml.nodes import ScalarNode

from linklab import scenario
from linklab.core.paths import PROFILES
from linklab.report import publication, unknowns
from linklab.report.dependence import Dependence, dependences
from linklab.report.reproduction import CheckedStatement, Verdict
from linklab.report.unknowns import Setting, Unknown, Value
from linklab.scenario import to_yaml
from linklab.schema.document import ScenarioError

STATEMENT = publication.find("mptcp").statements[2]


def unknown(what: str, *names: str) -> Unknown:
    return Unknown(what, values=tuple(Value(name, {}) for name in names))


def told(tried: Sequence[Setting], verdicts: Sequence[Verdict]) -> Dependence:
    """What one statement depends on, by its verdict in each setting."""
    (found,) = dependences(
        tried,
        {
            one.name: [CheckedStatement(STATEMENT, verdict)]
            for one, verdict in zip(tried, verdicts, strict=True)
        },
    )
    return found


TRIED = unknowns.settings([unknown("queue", "q1", "q2"), unknown("film", "f1"), unknown("none")])


def test_the_settings_are_each_value_alone_and_all_together() -> None:
    assert [(one.name, [value.name for value in one.values.values()]) for one in TRIED] == [
        ("ours", []),
        ("q1", ["q1"]),
        ("q2", ["q2"]),
        ("f1", ["f1"]),
        ("together-1", ["q1", "f1"]),
        ("together-2", ["q2", "f1"]),
    ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_each_value_is_tried_alone_and_among_others(counts: list[int]) -> None:
    many = [
        unknown(f"u{n}", *(f"u{n}-{value}" for value in range(count)))
        for n, count in enumerate(counts)
    ]
    tried = unknowns.settings(many)
    every = {value.name for one in many for value in one.values}
    alone = [v.name for one in tried if len(one.values) == 1 for v in one.values.values()]
    together = {v.name for one in tried if len(one.values) > 1 for v in one.values.values()}
    assert sorted(alone) == sorted(every)
    assert together == (every if sum(map(bool, counts)) > 1 else set())


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ("hhhhhh", "always"),
        ("ffffff", "never"),
        ("hhhh--", "always"),
        ("hfhhhh", "depends on queue"),
        ("ffhfff", "depends on queue"),
        ("hhhfhh", "depends on film"),
        ("hffffh", "depends on queue, film"),
        ("hhhhfh", "depends on several together"),
        ("-hhfhh", ""),
    ],
)
def test_what_a_statement_depends_on(verdicts: str, text: str) -> None:
    words: dict[str, Verdict] = {"h": "holds", "f": "fails", "-": "no runs"}
    assert told(TRIED, [words[one] for one in verdicts]).text == text


# --- What values change


def value(key: str, text: str, *only: str) -> Value:
    return Value("v", {key: ScalarNode("tag:yaml.org,2002:str", text)}, only, "x.yaml:3: set")


def test_a_value_changes_its_keys_alone() -> None:
    was = scenario.find("mptcp-wglb+video")
    now = value("links.*.queue", "64 kB").of(was, was.name)
    assert [one.queue_down_bytes for one in now.links.values()] == [64_000, 64_000]
    links = {
        name: replace(
            one,
            queue_down_bytes=was.links[name].queue_down_bytes,
            queue_up_bytes=was.links[name].queue_up_bytes,
        )
        for name, one in now.links.items()
    }
    assert to_yaml(replace(now, links=links)) == to_yaml(was)
    longer = value("workload.player.start", "1 MB").of(was, was.name)
    assert longer.workload.player is not None
    assert longer.workload.player.starts_with_bytes == 1_000_000


@pytest.mark.parametrize(
    "one",
    [
        value("links.wifi.stations.rate", "6 Mbit/s"),
        value("links.lte2.queue", "64 kB"),
        value("links.*.queue", "64 kB", "another"),
    ],
)
def test_a_value_leaves_scenarios_that_lack_its_keys(one: Value) -> None:
    was = scenario.find("mptcp-wglb")
    assert one.of(was, was.name) == was


def test_a_value_that_no_scenario_may_have_is_refused_with_its_place() -> None:
    was = scenario.find("mptcp-wglb")
    with pytest.raises(
        ScenarioError, match=r"x\.yaml:3: set: in mptcp-wglb:\d+: links\.wifi\.queue"
    ):
        value("links.wifi.queue", "64").of(was, was.name)


@pytest.mark.parametrize("name", publication.names())
def test_values_that_ship_change_scenarios_and_keep_their_names(name: str) -> None:
    stated = publication.find(name)
    names = list(dict.fromkeys(cell.scenario for cell in stated.cells))
    for one in (value for each in stated.unknowns for value in each.values):
        changed = stated.with_values([one])
        now = [changed.scenario(each) for each in names]
        assert [each.name for each in now] == names
        assert now != [stated.scenario(each) for each in names], one.place
        assert one.place.startswith(f"{name}.yaml:")
        text = (PROFILES / "publications" / f"{name}.yaml").read_text().splitlines()
        assert one.name in text[int(one.place.split(":")[1]) - 1], "the error names the line"
