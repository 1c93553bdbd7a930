"""Reads a campaign's file: the runs to be made. Pure, except for the scenario files it names.

The handbook has its keys (reference/suite-and-campaign-files.md). Any mistake in the file raises one
ScenarioError with file, line and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from linklab.runs import plan_file
from linklab.runs.plan_file import MOST_RUNS, PlanFile
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario, ScenarioError, parse
from linklab.scenario.changing import text_name, text_of, with_value, without
from linklab.schema import document
from linklab.schema.mapping import Keys, Mapping, integer, within

_ROOT = Keys(("name", "matrices"), ("title", *plan_file.SHARED))
_MATRIX = Keys(("scenarios", "algorithms"), ("runs", "seeds", "variants"))
_VARIANT = Keys(("name", "set"))

_runs = within(integer, 1, MOST_RUNS, f"1 to {MOST_RUNS}")


@dataclass(frozen=True, slots=True)
class Campaign:
    """Holds a campaign: every run once, in the order of their starts."""

    name: str
    title: str
    path: Path
    requests: tuple[RunRequest, ...]

    @property
    def scenarios(self) -> list[Scenario]:
        """Returns every scenario once, in the order of the file."""
        return list({one.scenario.name: one.scenario for one in self.requests}.values())


def load(path: Path) -> Campaign:
    """Loads the campaign in a file. Raises ScenarioError."""
    return expand(document.read(path, str(path)), path)


def expand(text: str, path: Path) -> Campaign:
    """Parses a campaign's YAML text. `path` is its file. Raises ScenarioError."""
    file = PlanFile(text, path, _ROOT, "campaign")
    root = file.root
    found: dict[str, RunRequest] = {}
    scenarios: dict[str, Scenario] = {}
    for matrix in root.items("matrices", _MATRIX):
        for request in _requests(matrix, file):
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
    return Campaign(file.name, root.get_or("title", str, ""), path, tuple(found.values()))


def _requests(matrix: Mapping, file: PlanFile) -> list[RunRequest]:
    """Returns the requests of a matrix, by seed first. So the first runs show all scenarios and
    algorithms."""
    if matrix.has("runs") and matrix.has("seeds"):
        matrix.fail("seeds", "goes without 'runs', which stands for seeds 1 to so many")
    seeds: Sequence[int] = (
        plan_file.seeds(matrix)
        if matrix.has("seeds")
        else range(1, matrix.get_or("runs", _runs, 1) + 1)
    )
    listed = math.prod(matrix.count(key) for key in ("scenarios", "variants", "algorithms"))
    if listed * len(seeds) > MOST_RUNS:
        matrix.fail(None, f"more than {MOST_RUNS} runs")
    scenarios = matrix.each("scenarios", file.scenario)
    if matrix.has("variants"):
        variants = matrix.items("variants", _VARIANT)
        files = matrix.each("scenarios", file.scenario_file)
        scenarios = [_variant(one, base) for base in files for one in variants]
    entrants = file.entrants(matrix, scenarios)
    for key, values in (("scenarios", scenarios), ("algorithms", entrants), ("seeds", seeds)):
        if not values:
            matrix.fail(key, "there is none")
    return [
        entrant.request(scenario, seed)
        for seed in seeds
        for scenario in scenarios
        for entrant in entrants
    ]


def _variant(variant: Mapping, file: Path) -> Scenario:
    """Returns the scenario with the variant's keys in place of its file's."""
    name = f"{file.stem}-{variant.get('name', plan_file.name)}"
    changes = variant.sub("set", Keys((), named=_changed))
    if not changes.values:
        variant.fail("set", "must be a mapping such as {payload.size: 30 MB}")
    root = document.compose(document.read(file, str(file)), str(file), "name")
    if changes.values.keys() & {"payload", "payload.size", "payload.seed"}:
        root = without(root, ["payload", "sha256"])
    for key, value in changes.values.items():
        try:
            root = with_value(root, key.split("."), value)
            parse(text_of(root), "set", path=file, stem=file.stem)
        except (ValueError, yaml.YAMLError) as error:
            said = re.sub(r"^set:\d+: ", "", str(error))
            changes.fail(key, f"in {file.stem}: {said}")
    named = with_value(root, ["name"], text_name(name))
    try:
        return parse(text_of(named), str(file), path=file)
    except ScenarioError as error:  # The name is too long.
        variant.fail("name", re.sub(r"^[^ ]*:\d+: ", "", str(error)))


def _changed(key: str) -> str:
    """Checks that a variant may change this key. Raises ValueError."""
    if key == "name":
        raise ValueError("a variant is called SCENARIO-NAME; allowed: the scenario's other keys")
    return key
