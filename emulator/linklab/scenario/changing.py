"""Changes keys of a scenario's YAML, named as `links.wifi.loss`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from linklab.scenario.reading import parse
from linklab.scenario.settings import Scenario
from linklab.scenario.writing import to_yaml
from linklab.schema import document

EVERY: Final = "*"
"""Stands in a key for all that the scenario has at its place: `links.*.queue`."""

_MAP_TAG: Final = "tag:yaml.org,2002:map"
_STRING_TAG: Final = "tag:yaml.org,2002:str"


def changed(scenario: Scenario, changes: Mapping[str, Node]) -> Scenario:
    """Returns the scenario with other values of keys, under its name. Keys of a mapping that it does
    not have leave it as it is. Raises ScenarioError."""
    root = _canonical(scenario)
    found = root
    for key, value in changes.items():
        for path in _paths(root, key.split(".")):
            if path[0] == "payload":
                found = without(found, ["payload", "sha256"])
            found = with_value(found, path, value)
    return scenario if found is root else parse(text_of(found), scenario.name, path=scenario.path)


def _canonical(scenario: Scenario) -> Node:
    return document.compose(to_yaml(scenario), scenario.name, "name")


def _paths(node: Node, key: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields the paths that a key stands for, in mappings that exist."""
    if not isinstance(node, MappingNode):
        return
    first, rest = key[0], key[1:]
    if not rest:
        yield (first,)
    for name, child in node.value:
        if rest and first in (EVERY, name.value):
            yield from ((name.value, *path) for path in _paths(child, rest))


def text_name(name: str) -> ScalarNode:
    """Returns a name as YAML."""
    return ScalarNode(_STRING_TAG, name)


def with_value(node: Node, path: Sequence[str], value: Node) -> MappingNode:
    """Returns the mapping with `value` at `path`. Other places that share parts by YAML aliases do
    not change. Raises ValueError."""
    if not isinstance(node, MappingNode):
        raise ValueError(f"there is no {path[0]!r} in a single value")
    first, rest = path[0], path[1:]
    old = next((child for key, child in node.value if key.value == first), None)
    if rest:
        value = with_value(MappingNode(_MAP_TAG, []) if old is None else old, rest, value)
    kept = [(key, child) for key, child in node.value if key.value != first]
    return MappingNode(node.tag, [*kept, (text_name(first), value)])


def without(node: Node, path: Sequence[str]) -> Node:
    """Returns the mapping without the entry at `path`, if there is one."""
    if not isinstance(node, MappingNode):
        return node
    first, rest = path[0], path[1:]
    entries = [
        (key, without(child, rest) if key.value == first and rest else child)
        for key, child in node.value
        if key.value != first or rest
    ]
    return MappingNode(node.tag, entries)


def text_of(node: Node) -> str:
    """Returns the YAML text."""
    return str(yaml.serialize(node, Dumper=yaml.SafeDumper))
