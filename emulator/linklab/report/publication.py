"""Reads what a publication states, as data to check runs against. Pure, except `find` and its callers.

The file (keys marked * are needed, the others show their defaults):

    name*: thesis                      # the file's name without .yaml
    title*: Performance of …           # one line
    source*: thesis                    # its key in REFERENCES.md
    runs: 10                           # how many its figures are of
    campaign: sweep                    # of profiles/campaigns: its scenarios may be named, too
    same: 10 %                         # the dead band of signs: 0.9 to 1.1 are neither less nor more
    one_algorithm: {emptcp: [emptcp-http, emptcp-kernel-2016]}   # clients that run the same one
    unknowns:                          # what the publication leaves open; each with one at least of
                                       # fitted_to, moves, and values
      - what*: U of alg1
        fitted_to:                     # the figures that our value was fitted to: metrics and cells
                                       # as below; link: of this link only; a workload's name follows
                                       # its scenario's: hs-s6+video
          - {metrics: [download], cells: {hs-s6: [alg1]}}
        moves: []                      # figures that it can move, if it was chosen after looking
        range: 0.5 to 2 MB             # where it may lie. Needed with moves and values
        why: …                         # why it is open, or matters. Needed with values
        values:                        # others to try (`--unknowns`): keys of scenarios (`*`: all links)
          - {name*: queue-64k, set*: {links.*.queue: 64 kB}, only: [hs-s6+video]}
    statements*:
      - metric*: download              # of MEASURES
        link: wifi                     # for a measure of one link
        source*: table 5.12            # where in the publication
        kind: does not follow          # from the publication's own figures, which needs
        why: …                         # why runs come out otherwise than stated
        computed: yes                  # by linklab, and not published
        workload: video                # over the scenarios' links, in place of their own; or
                                       # several, a statement for each
        first: 250 s                   # of the runs' first so many seconds alone, without a tail
        within: 10 %                   # or 1 s, or '10 % or 1 s', whichever is more; or such a
                                       # one for each client. Of ratios it is in points

        values: {hs-s6: {alg3: 16.68 s}}          # one statement for each; or 16 s to 17 s
        standard_errors: 2             # the most that `within` may be, of downloads (`spread.py`)

        each: [ts, tm]                 # one statement for each scenario, or
        over: [ts, tm, ao]             # one for all: the mean of their ratios
        beside: ls                     # `to` ran in this scenario instead
        of: alg3                       # or several, a statement for each
        to: [naive]                    # if several, the best of them, or
        to_sum: [curl-wifi, curl-lte]  # their sum: more than the sum of its parts
        ratio: 51 %                    # of / to: a value, '60 % to 99 %', or 'below 99 %'
        difference: 44 s to 70 s       # of - to
        is: less                       # or more, or same (within; unset: as `same` above)

        with: cpu-median               # Pearson's correlation of two measures over
        cells: {hs-s7: [alg1, alg3]}   # these
        correlation: -0.91

        better_in: 13                  # of these cases, one for each scenario, `within` so many:
        cases:                         # one of `of` is better than the best of `to`
          - {each: [ts, tm], of: [alg3], to: [naive], metric: energy, workload: [video]}

Which statements are calibration, and which cannot discriminate, is computed (`statement_kinds.py`).
Any mistake in the file raises one ScenarioError with file, line and what is allowed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from linklab.core import units
from linklab.core.paths import PROFILES
from linklab.energy import library
from linklab.energy.fitted_to import FIGURES
from linklab.report import by_construction, spread, statement_kinds
from linklab.report.statement import RunGroup, Statement
from linklab.report.statement_reader import STATEMENT, StatementReader
from linklab.report.unknowns import OURS, Unknown, Value
from linklab.runs import matrix, plan_file
from linklab.runs.comparison import PublishedFigures
from linklab.scenario import Scenario, file_of, ships, with_workload
from linklab.scenario import find as find_scenario
from linklab.scenario.workload_file import JOINED
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import Keys, Mapping, integer, one_of, within
from linklab.schema.named_files import NamedFiles
from linklab.schema.quantities import TEXT, WORDS

DIRECTORY: Final = PROFILES / "publications"

CAMPAIGNS: Final = PROFILES / "campaigns"


@dataclass(frozen=True, slots=True)
class Publication:
    """Holds the statements of a file, in its order. `swept` has the campaign's scenarios by name.
    `unknowns` are what the file leaves open. `values` are tried in place of the scenarios' own."""

    name: str
    title: str
    source: str
    runs: int
    swept: dict[str, Scenario]
    statements: tuple[Statement, ...]
    unknowns: tuple[Unknown, ...] = ()
    values: tuple[Value, ...] = ()

    def scenario(self, name: str) -> Scenario:
        """Returns the scenario of a cell. Raises ScenarioError."""
        return functools.reduce(
            lambda found, value: value.of(found, name), self.values, _scenario(name, self.swept)
        )

    def with_values(self, values: Iterable[Value]) -> Publication:
        """Returns the publication with other values of what it leaves open."""
        return replace(self, values=tuple(values))

    @property
    def cells(self) -> list[RunGroup]:
        """The cells to run in virtual time, each once and to its end, in the order of statements."""
        stated = [one for one in self.statements if not one.real_clock]
        cells = (replace(cell, first_s=0.0) for one in stated for cell in one.cells)
        return list(dict.fromkeys(cells))

    @property
    def first_seconds_cells(self) -> list[RunGroup]:
        """The cells that need figures of the runs' first seconds."""
        cells = (cell for one in self.statements for cell in one.cells)
        return list(dict.fromkeys(cell for cell in cells if cell.first_s))


_SAME: Final = within(units.parse_ratio, 0.0, 0.5, "0 to 50 %")

_ROOT = Keys(
    ("name", "title", "source", "statements"),
    ("runs", "campaign", "one_algorithm", "same", "unknowns"),
)
_ANY = Keys((), named=str)
_UNKNOWN = Keys(("what",), ("fitted_to", "range", "moves", "why", "values"))
_VALUE = Keys(("name", "set"), ("only",))


def names() -> list[str]:
    """Lists the names of the publications, sorted."""
    return NamedFiles("publication", (".yaml",), ScenarioError).names(DIRECTORY)


@functools.cache
def find(name: str) -> Publication:
    """Returns the publication of a name, read once per process. Raises ScenarioError."""
    path = DIRECTORY / f"{name}.yaml"
    return parse(document.read(path, path.name), path.name, energy_models(name))


def energy_models(publication: str) -> list[Unknown]:
    """Lists the energy models that were fitted to a publication's figures. Raises ScenarioError."""
    models = [library.get(name) for name in library.names()]
    fits = (
        Unknown(
            f"energy model {one.name}",
            tuple(figures for figures in one.fitted_to if figures.publication == publication),
        )
        for one in models
    )
    return [one for one in fits if one.fitted_to]


def about(scenario: Scenario) -> list[Statement]:
    """Lists what all publications state about one scenario, with any workload. Empty unless linklab
    ships the scenario. Raises ScenarioError."""
    own = _links_of(scenario.name)
    if scenario.path is None or not ships(own) or scenario.path.resolve() != file_of(own):
        return []
    return [
        statement
        for name in names()
        for statement in find(name).statements
        if {_links_of(cell.scenario) for cell in statement.cells} == {own}
    ]


def _links_of(name: str) -> str:
    """Returns a scenario's name without its workload."""
    return name.partition(JOINED)[0]


def values(statements: Iterable[Statement], metric: str, link: str = "") -> dict[RunGroup, float]:
    """Returns the published single values of a measure."""
    return {
        one.of[0]: one.expected.value
        for one in statements
        if one.form == "value"
        and (one.metric, one.link) == (metric, link)
        and one.expected.value is not None
    }


def figures_for(scenario: Scenario) -> dict[str, PublishedFigures]:
    """Returns the published figures of each client in a scenario."""
    statements = about(scenario)
    deltas = values(statements, "link-delta")
    return {
        cell.client: PublishedFigures(download_s, deltas.get(cell))
        for cell, download_s in values(statements, "download").items()
        if cell.scenario == scenario.name
    }


def parse(text: str, shown: str, fits: Iterable[Unknown] = ()) -> Publication:
    """Parses a publication. `shown` names the file in errors. `fits` are in addition to the file's
    own constants. Raises ScenarioError."""
    root = Mapping(shown, document.compose(text, shown, ", ".join(_ROOT.needed)), "", _ROOT)
    stem = shown.rpartition("/")[2].removesuffix(".yaml")
    name = root.get("name", one_of(stem))
    swept = _swept(root.get("campaign", TEXT.parse)) if root.has("campaign") else {}
    reader = StatementReader(swept, root.get_or("same", _SAME, None))
    statements = tuple(
        statement
        for item in root.items("statements", STATEMENT)
        for statement in reader.statements(item)
    )
    cells = {cell.scenario for one in statements for cell in one.cells}
    unknowns = [_unknown(item, cells) for item in root.items("unknowns", _UNKNOWN)]
    for fit in unknowns:
        _refuse_unstated(root, fit, statements)
    _refuse_twice(root, unknowns)
    runs = root.get_or("runs", within(integer, 1, 1000, "1 to 1000"), 10)
    limited = spread.limited(statements, runs)
    known = [*fits, *unknowns]
    return Publication(
        name=name,
        title=root.get("title", WORDS.parse),
        source=root.get("source", WORDS.parse),
        runs=runs,
        swept=swept,
        statements=by_construction.marked(
            statement_kinds.classified(limited, known, _one_algorithm(root)),
            known,
            functools.cache(lambda name: _scenario(name, swept)),
        ),
        unknowns=tuple(unknowns),
    )


def _scenario(name: str, swept: dict[str, Scenario]) -> Scenario:
    base, joined, workload = name.partition(JOINED)
    found = swept.get(base) or find_scenario(base)
    return with_workload(found, workload, name) if joined else found


def _swept(campaign: str) -> dict[str, Scenario]:
    """Returns the scenarios of a campaign that linklab ships. Raises ScenarioError."""
    found = matrix.load(CAMPAIGNS / f"{campaign}.yaml")
    return {one.name: one for one in found.scenarios}


def _unknown(item: Mapping, stated: Iterable[str]) -> Unknown:
    """Reads what is left open. `stated` names the statements' scenarios. Raises ScenarioError."""
    return Unknown(
        item.get("what", WORDS.parse),
        tuple(map(FIGURES.of, item.items("fitted_to", FIGURES.keys))),
        item.get_or("range", WORDS.parse, ""),
        tuple(map(FIGURES.of, item.items("moves", FIGURES.keys))),
        item.get_or("why", WORDS.parse, ""),
        tuple(_value(one, stated) for one in item.items("values", _VALUE)),
    )


def _value(item: Mapping, stated: Iterable[str]) -> Value:
    """Reads a value to try. Raises ScenarioError."""
    changes = item.sub("set", Keys((), named=str))
    only = item.each("only", one_of(*stated)) if item.has("only") else []
    line = changes.node.start_mark.line + 1
    place = f"{item.shown}:{line}: {item.path('set')}"
    return Value(item.get("name", plan_file.name), changes.values, tuple(only), place)


def _one_algorithm(root: Mapping) -> list[list[str]]:
    """Reads which clients run the same algorithm. Raises ScenarioError."""
    if not root.has("one_algorithm"):
        return []
    groups = root.sub("one_algorithm", _ANY)
    return [groups.each(name, WORDS.parse) for name in groups.values]


def _refuse_twice(root: Mapping, unknowns: Iterable[Unknown]) -> None:
    names = [value.name for one in unknowns for value in one.values]
    for name in {OURS, *names}:
        if names.count(name) > (name != OURS):
            root.fail("unknowns", f"two values are called {name!r}")


def _refuse_unstated(root: Mapping, fit: Unknown, statements: Iterable[Statement]) -> None:
    for one in statement_kinds.unstated(fit, statements):
        root.fail("unknowns", f"{fit.what}: no statement is about {one}")
