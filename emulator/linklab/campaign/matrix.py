"""A campaign's file: which runs there are to be. Pure but for the scenario files it names.

The file (keys marked * are needed, the others show their defaults):

    name*: thesis                 # the file's name without .yaml
    title: ''                     # one line
    exec:                         # programs of your own, as `linklab exec` runs them
      - {name*: mine, command*: "{campaign}/mine {url} {output}"}
                                  # {campaign} is this file's directory: on every worker
    matrices*:                    # each is all its scenarios with all its algorithms and seeds
      - scenarios*: [hs-s7, ./my.yaml]      # names, or paths beside this file
        algorithms*: [alg1, alg3, mine]     # of `linklab compare`, and of `exec` above
        runs: 1                   # with seeds 1 to so many; or seeds: [1, 7, 12]
        variants:                 # each scenario once for each, called SCENARIO-NAME
          - {name*: lossy, set*: {links.wifi.loss: 1 %, payload.size: 30 MB}}
                                  # keys of a scenario's file, and their values

Published figures are not those of a variant, and are left out. Whatever is wrong with the file is
one ScenarioError with file, line and what is allowed.
"""

from __future__ import annotations

import functools
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from linklab.core.paths import PROFILES
from linklab.runs import clients
from linklab.runs.job import require_no_credentials
from linklab.runs.runner import Request
from linklab.scenario import Scenario, ScenarioError, find, parse
from linklab.scenario.reading import NAME
from linklab.schema import document
from linklab.schema.mapping import Keys, integer, within
from linklab.schema.mapping import Mapping as Fields

MOST_RUNS: Final = 100_000
"""What a campaign may hold: more is a slip, and would take months."""

_ROOT = Keys(("name", "matrices"), ("title", "exec"))
_EXEC = Keys(("name", "command"))
_MATRIX = Keys(("scenarios", "algorithms"), ("runs", "seeds", "variants"))
_VARIANT = Keys(("name", "set"))
_MAP_TAG: Final = "tag:yaml.org,2002:map"
_STRING_TAG: Final = "tag:yaml.org,2002:str"

_seed = within(integer, 0, 2**63 - 1, "0 to 2^63-1")
_runs = within(integer, 1, MOST_RUNS, f"1 to {MOST_RUNS}")


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as read: every run once, in the order in which they begin."""

    name: str
    title: str
    path: Path
    requests: tuple[Request, ...]

    @property
    def scenarios(self) -> list[Scenario]:
        """Every scenario once, in the order of the file."""
        return list({one.scenario.name: one.scenario for one in self.requests}.values())


def load(path: Path) -> Campaign:
    """The campaign in a file. Raises ScenarioError."""
    return expand(document.read(path, str(path)), path)


def expand(text: str, path: Path) -> Campaign:
    """The campaign in YAML text; `path` is where it stands. Raises ScenarioError."""
    root = Fields(str(path), document.compose(text, str(path), ", ".join(_ROOT.needed)), "", _ROOT)
    name = root.get("name", _name)
    if name != path.stem:
        root.fail("name", f"{name!r} must be the file's name without .yaml, {path.stem!r}")
    programs = _programs(root, path)
    found: dict[str, Request] = {}
    scenarios: dict[str, Scenario] = {}
    for matrix in root.items("matrices", _MATRIX):
        for request in _requests(matrix, path, programs):
            known = scenarios.setdefault(request.scenario.name, request.scenario)
            if known != request.scenario:
                matrix.fail("scenarios", f"two scenarios are called {known.name!r}")
            if request.label in found:
                matrix.fail(None, f"{request.label} is in the campaign already")
            found[request.label] = request
            if len(found) > MOST_RUNS:
                matrix.fail(None, f"more than {MOST_RUNS} runs")
    if not found:
        root.fail("matrices", "there is nothing to run")
    return Campaign(name, root.get_or("title", str, ""), path, tuple(found.values()))


def _programs(root: Fields, path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in root.items("exec", _EXEC):
        name = one.get("name", _name)
        if clients.is_taken(name) or name in found:
            one.fail("name", f"{name!r} is taken")
        here = str(path.resolve().parent)
        found[name] = tuple(word.replace("{campaign}", here) for word in one.get("command", _words))
    return found


def _requests(matrix: Fields, path: Path, programs: Mapping[str, tuple[str, ...]]) -> list[Request]:
    """Every seed with every scenario and algorithm: what is done first shows all of them."""
    if matrix.has("runs") and matrix.has("seeds"):
        matrix.fail("seeds", "goes without 'runs', which stands for seeds 1 to so many")
    seeds: Sequence[int] = (
        matrix.each("seeds", _seed)
        if matrix.has("seeds")
        else range(1, matrix.get_or("runs", _runs, 1) + 1)
    )
    listed = math.prod(matrix.count(key) for key in ("scenarios", "variants", "algorithms"))
    if listed * len(seeds) > MOST_RUNS:
        matrix.fail(None, f"more than {MOST_RUNS} runs")
    scenarios = matrix.each("scenarios", functools.partial(_find, path))
    if matrix.has("variants"):
        variants = matrix.items("variants", _VARIANT)
        files = matrix.each("scenarios", functools.partial(_file_of, path))
        scenarios = [_variant(one, file) for file in files for one in variants]
    algorithms = matrix.each("algorithms", clients.known_to(scenarios, programs))
    for key, values in (("scenarios", scenarios), ("algorithms", algorithms), ("seeds", seeds)):
        if not values:
            matrix.fail(key, "there is none")
    return [
        Request(scenario, None, seed, command=programs[name], name=name)
        if name in programs
        else Request(scenario, name, seed)
        for seed in seeds
        for scenario in scenarios
        for name in algorithms
    ]


def _variant(variant: Fields, file: Path) -> Scenario:
    """The scenario as its file would say it with the variant's keys."""
    name = f"{file.stem}-{variant.get('name', _name)}"
    changes = variant.values["set"]
    if not isinstance(changes, MappingNode) or not changes.value:
        variant.fail("set", "must be a mapping such as {payload.size: 30 MB}")
    for key, _ in changes.value:
        if not isinstance(key, ScalarNode):
            variant.fail_at(key, variant.path("set"), "a key must be a word")
    root = document.compose(document.read(file, str(file)), str(file), "name")
    if {key.value for key, _ in changes.value} & {"payload", "payload.size", "payload.seed"}:
        root = _without(root, ["payload", "sha256"])
    for key, value in changes.value:
        try:
            root = _with(root, key.value.split("."), value)
            parse(_text(root), "set", path=file)
        except (ValueError, yaml.YAMLError) as error:
            said = re.sub(r"^set:\d+: ", "", str(error))
            variant.fail_at(key, variant.path(f"set.{key.value}"), f"in {file.stem}: {said}")
    named = _with(root, ["name"], ScalarNode(_STRING_TAG, name))
    try:
        return replace(parse(_text(named), str(file), path=file), published=())
    except ScenarioError as error:  # Too long for a name.
        variant.fail("name", re.sub(r"^[^ ]*:\d+: ", "", str(error)))


def _with(node: Node, path: Sequence[str], value: Node) -> MappingNode:
    """The mapping with the value at `path`; what it shares by aliases stays as it is elsewhere."""
    if not isinstance(node, MappingNode):
        raise ValueError(f"there is no {path[0]!r} in a single value")
    first, rest = path[0], path[1:]
    old = next((child for key, child in node.value if key.value == first), None)
    if rest:
        value = _with(MappingNode(_MAP_TAG, []) if old is None else old, rest, value)
    kept = [(key, child) for key, child in node.value if key.value != first]
    return MappingNode(node.tag, [*kept, (ScalarNode(_STRING_TAG, first), value)])


def _without(node: Node, path: Sequence[str]) -> Node:
    """The mapping without what is at `path`, if it is there."""
    if not isinstance(node, MappingNode):
        return node
    first, rest = path[0], path[1:]
    entries = [
        (key, _without(child, rest) if key.value == first and rest else child)
        for key, child in node.value
        if key.value != first or rest
    ]
    return MappingNode(node.tag, entries)


def _text(node: Node) -> str:
    return str(yaml.serialize(node, Dumper=yaml.SafeDumper))


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name; allowed: a-z, 0-9 and '-', at most 64")
    return text


def _words(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is no command: {error}") from error
    if not words:
        raise ValueError("an empty command; allowed: a program and its arguments")
    require_no_credentials(words)
    return words


def _find(campaign: Path, text: str) -> Scenario:
    return find(str(campaign.parent / text) if _is_path(text) else text)


def _file_of(campaign: Path, text: str) -> Path:
    return campaign.parent / text if _is_path(text) else PROFILES / f"{text}.yaml"


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith((".yaml", ".yml"))
