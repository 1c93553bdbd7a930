"""Reads what a publication states, as data to check runs against. Pure, except `find` and its callers.

The file (keys marked * are needed, the others show their defaults):

    name*: thesis                      # the file's name without .yaml
    title*: Performance of …           # one line
    source*: thesis                    # its key in REFERENCES.md
    runs: 10                           # how many its figures are of
    campaign: sweep                    # of profiles/campaigns: its scenarios may be named, too
    same: 10 %                         # the dead band of signs: 0.9 to 1.1 are neither less nor more
    not_there: {gb-p: GreenBag …}      # clients and other needs that linklab lacks, in words
    one_algorithm: {emptcp: [emptcp-http, emptcp-kernel-2016]}   # clients that run the same one
    constants:                         # what was fitted to figures of the file
      - what*: U of alg1
        fitted_to*:                    # metrics and cells as below; link: of this link only; a
                                       # workload's name follows its scenario's: hs-s6+video
          - {metrics: [download], cells: {hs-s6: [alg1]}}
        range: 0.5 to 2 MB             # instead or in addition, of a constant that was chosen after
        moves: []                      # looking: where it may lie, and figures that it can move
    statements*:
      - metric*: download              # of MEASURES
        link: wifi                     # for a measure of one link
        source*: table 5.12            # where in the publication
        kind: does not follow          # from the publication's own figures, which needs
        why: …                         # why runs come out otherwise than stated
        computed: yes                  # by linklab, and not published
        needs: [music]                 # of not_there
        workload: video                # over the scenarios' links, in place of their own; or
                                       # several, a statement for each
        first: 250 s                   # of the runs' first so many seconds alone, without a tail
        within: 10 %                   # or 1 s, or '10 % or 1 s', whichever is more; or such a
                                       # one for each client. Of ratios it is in points

        values: {hs-s6: {alg3: 16.68 s}}          # one statement for each; or 16 s to 17 s
        standard_errors: 2             # the most that `within` may be, of downloads (`spread.py`)

        each: [ts, tm]                 # one statement for each scenario, or
        over: [ts, tm, ao]             # one for all: the mean of their ratios
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
from pathlib import Path
from typing import Final

from linklab.core import units
from linklab.core.paths import PROFILES
from linklab.energy import library
from linklab.energy.fitted_to import FIGURES
from linklab.report import by_construction, spread, statement_kinds
from linklab.report.statement import RunGroup, Statement
from linklab.report.statement_kinds import KnownFit
from linklab.report.statement_reader import STATEMENT, StatementReader
from linklab.runs import matrix
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
    `constants` are the file's constants that were fitted to its figures."""

    name: str
    title: str
    source: str
    runs: int
    not_there: dict[str, str]
    swept: dict[str, Scenario]
    statements: tuple[Statement, ...]
    constants: tuple[KnownFit, ...] = ()

    def scenario(self, name: str) -> Scenario:
        """Returns the scenario of a cell. Raises ScenarioError."""
        return _scenario(name, self.swept)

    @property
    def checkable(self) -> tuple[Statement, ...]:
        """The statements that linklab can check."""
        return tuple(one for one in self.statements if not one.missing)

    @property
    def cells(self) -> list[RunGroup]:
        """The cells to run in virtual time, each once and to its end, in the order of statements."""
        stated = [one for one in self.checkable if not one.real_clock]
        cells = (replace(cell, first_s=0.0) for one in stated for cell in one.cells)
        return list(dict.fromkeys(cells))

    @property
    def first_seconds_cells(self) -> list[RunGroup]:
        """The cells that need figures of the runs' first seconds."""
        cells = (cell for one in self.checkable for cell in one.cells)
        return list(dict.fromkeys(cell for cell in cells if cell.first_s))


_SAME: Final = within(units.parse_ratio, 0.0, 0.5, "0 to 50 %")

_ROOT = Keys(
    ("name", "title", "source", "statements"),
    (
        "runs",
        "campaign",
        "not_there",
        "one_algorithm",
        "same",
        "constants",
    ),
)
_ANY = Keys((), named=str)
_CONSTANT = Keys(("what",), ("fitted_to", "range", "moves"))


def names(directory: Path = DIRECTORY) -> list[str]:
    """Lists the names of the publications whose files are in a directory, sorted."""
    return NamedFiles("publication", (".yaml",), ScenarioError).names(directory)


@functools.cache
def find(name: str, directory: Path = DIRECTORY) -> Publication:
    """Returns the publication of a name, read once per process. Raises ScenarioError."""
    path = directory / f"{name}.yaml"
    return parse(document.read(path, path.name), path.name, energy_models(name))


def energy_models(publication: str) -> list[KnownFit]:
    """Lists the energy models that were fitted to a publication's figures. Raises ScenarioError."""
    models = [library.get(name) for name in library.names()]
    fits = (
        KnownFit(
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


def parse(text: str, shown: str, fits: Iterable[KnownFit] = ()) -> Publication:
    """Parses a publication. `shown` names the file in errors. `fits` are in addition to the file's
    own constants. Raises ScenarioError."""
    root = Mapping(shown, document.compose(text, shown, ", ".join(_ROOT.needed)), "", _ROOT)
    stem = shown.rpartition("/")[2].removesuffix(".yaml")
    name = root.get("name", one_of(stem))
    lacking: dict[str, str] = {}
    if root.has("not_there"):
        words = root.sub("not_there", _ANY)
        lacking = {one: words.get(one, WORDS.parse) for one in words.values}
    swept = _swept(root.get("campaign", TEXT.parse)) if root.has("campaign") else {}
    reader = StatementReader(lacking, swept, root.get_or("same", _SAME, None))
    statements = tuple(
        statement
        for item in root.items("statements", STATEMENT)
        for statement in reader.statements(item)
    )
    if not statements:
        root.fail("statements", "there is none")
    for one in lacking:
        if one not in reader.used:
            words.fail(one, "no statement needs it")
    constants = [_constant(item, reader) for item in root.items("constants", _CONSTANT)]
    for fit in constants:
        _refuse_unstated(root, fit, statements)
    runs = root.get_or("runs", within(integer, 1, 1000, "1 to 1000"), 10)
    try:
        limited = spread.limited(statements, runs)
    except spread.NoSpread as error:
        root.fail("statements", str(error))
    known = [*fits, *constants]
    return Publication(
        name=name,
        title=root.get("title", WORDS.parse),
        source=root.get("source", WORDS.parse),
        runs=runs,
        not_there=lacking,
        swept=swept,
        statements=by_construction.marked(
            statement_kinds.classified(limited, known, _one_algorithm(root)),
            known,
            functools.cache(lambda name: _scenario(name, swept)),
        ),
        constants=tuple(constants),
    )


def _scenario(name: str, swept: dict[str, Scenario]) -> Scenario:
    base, joined, workload = name.partition(JOINED)
    found = swept.get(base) or find_scenario(base)
    return with_workload(found, workload, name) if joined else found


def _swept(campaign: str) -> dict[str, Scenario]:
    """Returns the scenarios of a campaign that linklab ships. Raises ScenarioError."""
    found = matrix.load(CAMPAIGNS / f"{campaign}.yaml")
    return {one.name: one for one in found.scenarios}


def _constant(item: Mapping, reader: StatementReader) -> KnownFit:
    """Reads a constant that was fitted. Raises ScenarioError."""
    read = {
        key: tuple(map(reader.figures, item.items(key, FIGURES.keys))) if item.has(key) else ()
        for key in ("fitted_to", "moves")
    }
    for key, figures in read.items():
        if item.has(key) and not figures:
            item.fail(key, "there is none")
    if item.has("range") != item.has("moves"):
        item.fail(None, "'range' and 'moves' go together")
    if not any(read.values()):
        item.fail(None, "needs 'fitted_to', or 'range' and 'moves'")
    return KnownFit(
        item.get("what", WORDS.parse),
        read["fitted_to"],
        item.get_or("range", WORDS.parse, ""),
        read["moves"],
    )


def _one_algorithm(root: Mapping) -> list[list[str]]:
    """Reads which clients run the same algorithm. Raises ScenarioError."""
    if not root.has("one_algorithm"):
        return []
    groups = root.sub("one_algorithm", _ANY)
    return [groups.each(name, WORDS.parse) for name in groups.values]


def _refuse_unstated(root: Mapping, fit: KnownFit, statements: Iterable[Statement]) -> None:
    for one in statement_kinds.unstated(fit, statements):
        root.fail("constants", f"{fit.what}: no statement is about {one}")
