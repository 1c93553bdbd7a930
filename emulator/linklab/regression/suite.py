"""Reads a regression suite: which downloads are compared, and how much figures may change.

The handbook has its keys (reference/suite-and-campaign-files.md). A wrong file raises one
ScenarioError with file, line and what is allowed.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from linklab.core import units
from linklab.core.paths import PROFILES
from linklab.regression.figures import FIGURES, Bound, Cell, parse_bound
from linklab.runs import plan_file
from linklab.runs.figures import figures_in
from linklab.runs.plan_file import MOST_RUNS, Entrant, PlanFile
from linklab.scenario import Payload, Scenario
from linklab.schema import document
from linklab.schema.mapping import Keys, Mapping, integer, within

DEFAULT = PROFILES / "regression" / "default.yaml"
"""The suite of `linklab regress` without arguments."""

DEFAULT_BOUNDS = {
    **{one.key: Bound(one.relative, one.absolute) for _, one in figures_in(lambda one: one.bounds)},
    "workload": Bound(0.05, 0.1),
    "counts": Bound(0.0, 1.0),
}
"""The bounds of every run's figures are in their rows. A workload's times depend on few requests, so
they vary more. One stall more or less may have just been avoided."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell with its scenario and client."""

    cell: Cell
    scenario: Scenario
    entrant: Entrant


@dataclass(frozen=True, slots=True)
class Except:
    """Bounds for the matching cells; None matches all."""

    scenario: str | None
    algorithm: str | None
    seed: int | None
    bounds: dict[str, Bound]

    def holds_for(self, cell: Cell) -> bool:
        """Tells whether a cell matches."""
        return (
            (self.scenario is None or fnmatch.fnmatchcase(cell.scenario, self.scenario))
            and (self.algorithm is None or fnmatch.fnmatchcase(cell.algorithm, self.algorithm))
            and self.seed in (None, cell.seed)
        )


@dataclass(frozen=True, slots=True)
class Program:
    """A program measured on the real clock.

    `cpu` and `memory` are the largest allowed ratios to curl's processor time and memory.
    """

    name: str
    command: tuple[str, ...]
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class CostPlan:
    """Downloads over the loopback device on the real clock."""

    size_bytes: int
    rounds: int
    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as read. `planned` is in the order of the file."""

    name: str
    path: Path
    baseline: Path
    planned: tuple[Planned, ...]
    verify: int
    bounds: dict[str, Bound]
    exceptions: tuple[Except, ...]
    cost: CostPlan | None

    @property
    def scenarios(self) -> list[Scenario]:
        """Returns every scenario once, with the suite's payload size."""
        return list({one.cell.scenario: one.scenario for one in self.planned}.values())

    def bounds_of(self, cell: Cell) -> dict[str, Bound]:
        """Returns a cell's bounds, by the figures' `bound`."""
        found = dict(self.bounds)
        for one in self.exceptions:
            if one.holds_for(cell):
                found.update(one.bounds)
        return found

    def verified(self) -> list[Planned]:
        """Returns the cells that run twice, evenly spaced in the file."""
        count = min(self.verify, len(self.planned))
        return [self.planned[(2 * n + 1) * len(self.planned) // (2 * count)] for n in range(count)]


_BOUNDS = tuple(dict.fromkeys(one.bound for one in FIGURES))
_ROOT = Keys(
    ("name", "scenarios"),
    (
        "baseline",
        "algorithms",
        "seeds",
        *plan_file.SHARED,
        "verify",
        "bounds",
        "exceptions",
        "cost",
    ),
)
_ENTRY = Keys(("scenario",), ("size", "algorithms", "seeds"))
_EXCEPTION = Keys((), ("scenario", "algorithm", "seed", *_BOUNDS))
_COST = Keys(("programs",), ("size", "rounds"))
_PROGRAM = Keys(("name", "command"), ("cpu", "memory"))

_size = within(units.parse_size, 1_000, 10_000_000_000, "1 kB to 10 GB")
_times = within(units.parse_number, 0.01, 1000.0, "0.01 to 1000 times curl's")


def load(path: Path) -> Suite:
    """Reads a suite from a file. Raises ScenarioError."""
    return parse(document.read(path, str(path)), path)


def parse(text: str, path: Path) -> Suite:
    """Reads a suite from YAML text; `path` is its file. Raises ScenarioError."""
    file = PlanFile(text, path, _ROOT, "suite")
    root = file.root
    entries = [
        (entry, entry.get("scenario", file.scenario)) for entry in root.items("scenarios", _ENTRY)
    ]
    users = [scenario for entry, scenario in entries if not entry.has("algorithms")]
    entrants = file.entrants(root, users) if root.has("algorithms") else []
    seeds = plan_file.seeds(root) if root.has("seeds") else [1]
    planned: dict[Cell, Planned] = {}
    scenarios: dict[str, Scenario] = {}
    for entry, scenario in entries:
        for one in _planned(entry, scenario, file, entrants, seeds):
            if one.cell in planned:
                entry.fail(None, f"{one.cell} is in the suite already")
            known = scenarios.setdefault(one.cell.scenario, one.scenario)
            if known != one.scenario:
                entry.fail("scenario", f"two scenarios are called {known.name!r}")
            planned[one.cell] = one
        if len(planned) > MOST_RUNS:
            entry.fail(None, f"more than {MOST_RUNS} downloads")
    if not planned:
        root.fail("scenarios", "there is nothing to download")
    bounds = dict(DEFAULT_BOUNDS)
    if root.has("bounds"):
        bounds.update(_bounds(root.sub("bounds", Keys((), _BOUNDS))))
    exceptions = tuple(_exception(one, [*planned]) for one in root.items("exceptions", _EXCEPTION))
    return Suite(
        name=file.name,
        path=path,
        baseline=path.parent / root.get_or("baseline", str, f"{file.name}.baseline.yaml"),
        planned=tuple(planned.values()),
        verify=root.get_or("verify", within(integer, 0, 1000, "0 to 1000"), 3),
        bounds=bounds,
        exceptions=exceptions,
        cost=_cost(root.sub("cost", _COST), file) if root.has("cost") else None,
    )


def _planned(
    entry: Mapping,
    scenario: Scenario,
    file: PlanFile,
    entrants: Sequence[Entrant],
    seeds: Sequence[int],
) -> list[Planned]:
    if entry.has("size"):
        size = entry.get("size", _size)
        why = scenario.workload.misfit(size)
        if why is not None:
            entry.fail("size", why)
        scenario = replace(scenario, payload=Payload(size, scenario.payload.seed))
    if entry.has("algorithms"):
        entrants = file.entrants(entry, [scenario])
    elif not entrants:
        entry.fail(None, "who is to download? The suite has no 'algorithms', nor has this entry")
    if entry.has("seeds"):
        seeds = plan_file.seeds(entry)
    if len(entrants) * len(seeds) > MOST_RUNS:
        entry.fail(None, f"more than {MOST_RUNS} downloads")
    return [
        Planned(Cell(scenario.name, entrant.name, seed), scenario, entrant)
        for entrant in entrants
        for seed in seeds
    ]


def _exception(one: Mapping, cells: Sequence[Cell]) -> Except:
    made = Except(
        scenario=one.get("scenario", str) if one.has("scenario") else None,
        algorithm=one.get("algorithm", str) if one.has("algorithm") else None,
        seed=plan_file.seed(one) if one.has("seed") else None,
        bounds=_bounds(one),
    )
    if not made.bounds:
        one.fail(None, f"states no bound; allowed: {', '.join(_BOUNDS)}")
    if not any(made.holds_for(cell) for cell in cells):
        one.fail(None, "holds for no download of the suite")
    return made


def _bounds(mapping: Mapping) -> dict[str, Bound]:
    return {
        figure.bound: mapping.get(figure.bound, functools.partial(parse_bound, figure))
        for figure in FIGURES
        if mapping.has(figure.bound)
    }


def _cost(mapping: Mapping, file: PlanFile) -> CostPlan:
    programs = tuple(
        Program(
            name=one.get("name", plan_file.name),
            command=one.get("command", file.words),
            cpu=one.get_or("cpu", _times, 3.0),
            memory=one.get_or("memory", _times, 4.0),
        )
        for one in mapping.items("programs", _PROGRAM)
    )
    if not programs:
        mapping.fail("programs", "there is nothing to watch")
    return CostPlan(
        size_bytes=mapping.get_or("size", _size, 200_000_000),
        rounds=mapping.get_or("rounds", within(integer, 1, 1000, "1 to 1000"), 5),
        programs=programs,
    )
