"""Reads what a publication states, as data to check runs against. Pure, except `find` and its callers.

The file (keys marked * are needed, the others show their defaults):

    name*: thesis                      # the file's name without .yaml
    title*: Performance of …           # one line
    source*: thesis                    # its key in REFERENCES.md
    runs: 10                           # how many its figures are of
    campaign: sweep                    # of profiles/campaigns: its scenarios may be named, too
    not_there: {gb-p: GreenBag …}      # clients and other needs that linklab lacks, in words
    statements*:
      - metric*: download              # of MEASURES
        link: wifi                     # for a measure of one link
        source*: table 5.12            # where in the publication
        kind: outcome                  # or calibration: what the scenario was fitted to; or does
                                       # not follow: known not to come out, which needs
        why: …                         # why runs come out otherwise than stated
        needs: [music]                 # of not_there
        workload: video                # over the scenarios' links, in place of their own
        first: 250 s                   # of the runs' first so many seconds alone, without a tail
        within: 10 %                   # or 1 s, or '10 % or 1 s', whichever is more; or such a
                                       # one for each client. Of ratios it is in points

        values: {hs-s6: {alg3: 16.68 s}}          # one statement for each; or 16 s to 17 s

        each: [ts, tm]                 # one statement for each scenario, or
        over: [ts, tm, ao]             # one for all: the mean of their ratios
        of: alg3                       # or several, a statement for each
        to: [naive]                    # if several, the best of them
        ratio: 51 %                    # of / to: a value, '60 % to 99 %', or 'below 99 %'
        difference: 44 s to 70 s       # of - to
        is: less                       # or more, or same (within)

        with: cpu-median               # Pearson's correlation of two measures over
        cells: {hs-s7: [alg1, alg3]}   # these
        correlation: -0.91

Any mistake in the file raises one ScenarioError with file, line and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from yaml.nodes import MappingNode

from linklab.core import units
from linklab.core.paths import PROFILES
from linklab.models.keys import LENGTH
from linklab.report.measures import MEASURES, Measure
from linklab.runs import clients, matrix
from linklab.runs.comparison import PublishedFigures
from linklab.scenario import Scenario, file_of, names_in, ships, with_workload, workload_names
from linklab.scenario import find as find_scenario
from linklab.scenario.workload_file import JOINED
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import Keys, Mapping, integer, one_of, within
from linklab.schema.named_files import NamedFiles
from linklab.schema.quantities import TEXT, WORDS

DIRECTORY: Final = PROFILES / "publications"

CAMPAIGNS: Final = PROFILES / "campaigns"

Kind = Literal["calibration", "outcome", "does not follow"]

KINDS: Final[tuple[Kind, ...]] = ("calibration", "outcome", "does not follow")

Form = Literal["value", "ratio", "difference", "correlation"]


@dataclass(frozen=True, slots=True, order=True)
class RunGroup:
    """Identifies the runs of one client in one scenario. If `first_s` is not 0, only their first
    `first_s` seconds count."""

    scenario: str
    client: str
    first_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Expected:
    """Holds the limits, both included, between which a measured value agrees with a statement.
    `text` is the publication's text. `value` is the published number if there is a single one."""

    low: float
    high: float
    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """Holds one statement of a publication.

    `of` and `to` are cells (RunGroup). A *value* has one `of`. A *ratio* or *difference* has one
    `of` per scenario, and in `to` the cells of the same scenario, the best of which counts. A
    *correlation* relates `metric` and `other` over all of `of`. `why` explains a known
    disagreement, or is "". `missing` lists what linklab lacks to check the statement.
    """

    line: int
    metric: str
    link: str
    form: Form
    of: tuple[RunGroup, ...]
    expected: Expected
    source: str
    kind: Kind = "outcome"
    to: tuple[RunGroup, ...] = ()
    other: str = ""
    why: str = ""
    missing: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[RunGroup, ...]:
        """All cells whose runs the statement needs."""
        return tuple(dict.fromkeys((*self.of, *self.to)))

    @property
    def measure(self) -> Measure:
        return MEASURES[self.metric]

    @property
    def real_clock(self) -> bool:
        """Whether only runs on the real clock can check the statement."""
        return any(MEASURES[one].real_clock for one in (self.metric, self.other) if one)

    @property
    def words(self) -> str:
        """What is compared, without the measure: `hs-s6 alg3`, `ts, tm, ao: alg3 to naive`."""
        return f"{self.where}{'' if self.form == 'value' else ':'} {self.compared_clients}"

    @property
    def where(self) -> str:
        """The statement's scenarios, joined by commas."""
        return ", ".join(dict.fromkeys(one.scenario for one in self.of))

    @property
    def compared_clients(self) -> str:
        """The clients compared: `alg3`, `alg3 to naive`."""
        client = ", ".join(dict.fromkeys(one.client for one in self.of))
        if not self.to:
            return client
        than = list(dict.fromkeys(one.client for one in self.to))
        return f"{client} to {'the best of ' if len(than) > 1 else ''}{', '.join(than)}"

    @property
    def title(self) -> str:
        """The measure in words, with its link and time."""
        words = self.measure.words
        if self.link:
            words = f"{words} of {self.link}"
        if self.of[0].first_s:
            words = f"{words} in the first {units.format_duration(self.of[0].first_s)}"
        if self.form == "correlation":
            return f"correlation of {words} with {MEASURES[self.other].words}"
        return words if self.form == "value" else f"{self.form} of {words}"

    def say(self, value: float) -> str:
        """Writes a value in the statement's form, for people."""
        if self.form == "ratio":
            return f"{value * 100:.1f} %"
        if self.form == "correlation":
            return f"{value:.2f}"
        return self.measure.say(value)


@dataclass(frozen=True, slots=True)
class Publication:
    """Holds the statements of a file, in its order. `swept` has the campaign's scenarios by name."""

    name: str
    title: str
    source: str
    runs: int
    not_there: dict[str, str]
    swept: dict[str, Scenario]
    statements: tuple[Statement, ...]

    def scenario(self, name: str) -> Scenario:
        """Returns the scenario of a cell. Raises ScenarioError."""
        base, joined, workload = name.partition(JOINED)
        found = self.swept.get(base) or find_scenario(base)
        return with_workload(found, workload, name) if joined else found

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


_ROOT = Keys(("name", "title", "source", "statements"), ("runs", "campaign", "not_there"))
_COMMON = ("link", "kind", "why", "needs", "within", "workload", "first")
_FORMS: dict[str, tuple[str, ...]] = {
    "values": ("values",),
    "comparison": ("each", "over", "of", "to", "ratio", "difference", "is"),
    "correlation": ("correlation", "with", "cells"),
}
_STATEMENT = Keys(("metric", "source"), (*_COMMON, *(k for keys in _FORMS.values() for k in keys)))
_ANY = Keys((), named=str)


def names(directory: Path = DIRECTORY) -> list[str]:
    """Lists the names of the publications whose files are in a directory, sorted."""
    return NamedFiles("publication", (".yaml",), ScenarioError).names(directory)


def find(name: str, directory: Path = DIRECTORY) -> Publication:
    """Returns the publication of a name. Raises ScenarioError."""
    path = directory / f"{name}.yaml"
    return parse(document.read(path, path.name), path.name)


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


def parse(text: str, shown: str) -> Publication:
    """Parses a publication. `shown` names the file in errors. Raises ScenarioError."""
    root = Mapping(shown, document.compose(text, shown, ", ".join(_ROOT.needed)), "", _ROOT)
    stem = shown.rpartition("/")[2].removesuffix(".yaml")
    name = root.get("name", one_of(stem))
    lacking: dict[str, str] = {}
    if root.has("not_there"):
        words = root.sub("not_there", _ANY)
        lacking = {one: words.get(one, WORDS.parse) for one in words.values}
    swept = _swept(root.get("campaign", TEXT.parse)) if root.has("campaign") else {}
    reader = _Reader(lacking, swept)
    statements = tuple(
        statement
        for item in root.items("statements", _STATEMENT)
        for statement in reader.statements(item)
    )
    if not statements:
        root.fail("statements", "there is none")
    for one in lacking:
        if one not in reader.used:
            words.fail(one, "no statement needs it")
    return Publication(
        name=name,
        title=root.get("title", WORDS.parse),
        source=root.get("source", WORDS.parse),
        runs=root.get_or("runs", within(integer, 1, 1000, "1 to 1000"), 10),
        not_there=lacking,
        swept=swept,
        statements=statements,
    )


def _swept(campaign: str) -> dict[str, Scenario]:
    """Returns the scenarios of a campaign that linklab ships. Raises ScenarioError."""
    found = matrix.load(CAMPAIGNS / f"{campaign}.yaml")
    return {one.name: one for one in found.scenarios}


class _Reader:
    """Reads statements. `used` collects the entries of `not_there` that they name."""

    def __init__(self, lacking: dict[str, str], swept: Iterable[str]) -> None:
        self._lacking = lacking
        self._name = one_of(*names_in(), *swept)
        self._workload = ""
        self._first_s = 0.0
        self.used: set[str] = set()

    def _scenario(self, text: str) -> str:
        """Returns the name of a scenario with the item's workload. Raises ValueError."""
        return f"{self._name(text)}{self._workload}"

    def statements(self, item: Mapping) -> Iterator[Statement]:
        """Yields the statements of one item of the list. Raises ScenarioError."""
        known = one_of(*workload_names())
        self._workload = f"{JOINED}{item.get('workload', known)}" if item.has("workload") else ""
        self._first_s = item.get_or("first", LENGTH.parse, 0.0)
        metric = item.get("metric", one_of(*MEASURES))
        measure = MEASURES[metric]
        if self._first_s and metric not in _OF_BEGINNINGS:
            item.fail(
                "first", f"{metric} is of whole runs; allowed: with {', '.join(_OF_BEGINNINGS)}"
            )
        if item.has("link") != measure.per_link:
            item.fail("link", f"{metric} is {'' if measure.per_link else 'not '}of one link")
        kind = item.get_or("kind", _kind, KINDS[1])
        if kind == "does not follow" and not item.has("why"):
            item.fail(None, "'why' is missing: 'kind: does not follow' needs it")
        forms = [name for name, keys in _FORMS.items() if any(map(item.has, keys))]
        if len(forms) != 1:
            item.fail(None, "needs either 'values', or 'of' and 'to', or 'correlation'")
        needs = self._needs(item)
        read = {
            "values": self._values,
            "comparison": self._comparison,
            "correlation": self._correlation,
        }[forms[0]]
        for line, form, of, to, expected in read(item, metric):
            missing = list(needs)
            other = item.get("with", one_of(*MEASURES)) if form == "correlation" else ""
            for cell in (*of, *to):
                if not _is_known(cell.client):
                    missing.append(self._lacking[cell.client])
            yield Statement(
                line=line,
                metric=metric,
                link=item.get_or("link", TEXT.parse, ""),
                form=form,
                of=of,
                to=to,
                other=other,
                expected=expected,
                source=item.get("source", WORDS.parse),
                kind=kind,
                why=item.get_or("why", WORDS.parse, ""),
                missing=tuple(dict.fromkeys(missing)),
            )

    def _needs(self, item: Mapping) -> list[str]:
        if not item.has("needs"):
            return []
        names = item.each("needs", one_of(*self._lacking))
        self.used.update(names)
        return [self._lacking[name] for name in names]

    def _client(self, text: str) -> str:
        """Checks that a client is known or listed in `not_there`."""
        if text in self._lacking:
            self.used.add(text)
            return text
        if not _is_known(text):
            one_of(*clients.names(clients.USUAL_LINKS), *self._lacking)(text)
        return text

    def _values(self, item: Mapping, metric: str) -> Iterator[_Read]:
        scenarios = item.sub("values", Keys((), named=self._scenario))
        quantity = MEASURES[metric].quantity
        for scenario in scenarios.values:
            row = scenarios.sub(scenario, Keys((), named=self._client))
            for client, node in row.values.items():
                low, high = row.get(client, _range(quantity.parse))
                said = row.get(client, TEXT.parse)
                yield (
                    node.start_mark.line + 1,
                    "value",
                    (RunGroup(self._scenario(scenario), client, self._first_s),),
                    (),
                    self._around(item, client, low, high, said, quantity.parse),
                )

    def _comparison(self, item: Mapping, metric: str) -> Iterator[_Read]:
        for key in ("of", "to"):
            if not item.has(key):
                item.fail(None, f"{key!r} is missing; needed: of, to")
        if item.has("each") == item.has("over"):
            item.fail(None, "needs 'each' or 'over', a list of scenarios")
        scenarios = item.each("each" if item.has("each") else "over", self._scenario)
        of_clients = item.one_or_each("of", self._client)
        to = item.each("to", self._client)
        if not scenarios or not to:
            item.fail("to" if scenarios else None, "names nobody" if scenarios else "no scenario")
        if not of_clients:
            item.fail("of", "names nobody")
        line = item.node.start_mark.line + 1
        for of in of_clients:
            form, expected = self._comparison_expected(item, metric, of)
            for together in [[one] for one in scenarios] if item.has("each") else [scenarios]:
                yield (
                    line,
                    form,
                    tuple(RunGroup(one, of, self._first_s) for one in together),
                    tuple(
                        RunGroup(one, client, self._first_s) for one in together for client in to
                    ),
                    expected,
                )

    def _comparison_expected(self, item: Mapping, metric: str, of: str) -> tuple[Form, Expected]:
        asked = [key for key in ("ratio", "difference", "is") if item.has(key)]
        if len(asked) != 1:
            item.fail(None, "needs one of 'ratio', 'difference' and 'is'")
        if item.has("is"):
            word = item.get("is", one_of("less", "more", "same"))
            if word != "same":
                if item.has("within"):
                    item.fail("within", f"goes without 'is: {word}'")
                low, high = (-math.inf, _BELOW_1) if word == "less" else (_ABOVE_1, math.inf)
                return "ratio", Expected(low, high, word)
            reach = self._reach(item, of, units.parse_ratio, points=True)(1.0)
            return "ratio", Expected(1 - reach, 1 + reach, "the same", 1.0)
        form: Form = "ratio" if item.has("ratio") else "difference"
        parse_one = units.parse_ratio if form == "ratio" else MEASURES[metric].quantity.parse
        low, high = item.get(form, _range(parse_one))
        said = item.get(form, TEXT.parse)
        return form, self._around(item, of, low, high, said, parse_one, points=form == "ratio")

    def _around(
        self,
        item: Mapping,
        client: str,
        low: float,
        high: float,
        said: str,
        parse_one: Callable[[str], float],
        *,
        points: bool = False,
    ) -> Expected:
        """Returns the limits from `low` to `high`, widened by `within`. A single value needs
        `within`."""
        if low < high and not item.has("within"):
            return Expected(low, high, said)
        if low == -math.inf:
            item.fail("within", f"goes without '{said}'")
        reach = self._reach(item, client, parse_one, points=points)(max(abs(low), abs(high)))
        return Expected(low - reach, high + reach, said, low if low == high else None)

    def _correlation(self, item: Mapping, metric: str) -> Iterator[_Read]:
        for key in ("correlation", "with", "cells", "within"):
            if not item.has(key):
                item.fail(None, f"{key!r} is missing; needed: correlation, with, cells, within")
        value = item.get("correlation", _signed)
        reach = item.get("within", within(units.parse_number, 0.0, 2.0, "0 to 2"))
        rows = item.sub("cells", Keys((), named=self._scenario))
        cells = tuple(
            RunGroup(scenario, client, self._first_s)
            for scenario in rows.values
            for client in rows.each(scenario, self._client)
        )
        if len(cells) < 3:
            item.fail("cells", "fewer than three cells say nothing of a correlation")
        said = item.get("correlation", TEXT.parse)
        yield (
            item.node.start_mark.line + 1,
            "correlation",
            cells,
            (),
            Expected(value - reach, value + reach, said, value),
        )

    def _reach(
        self, item: Mapping, client: str, parse_one: Callable[[str], float], *, points: bool = False
    ) -> Callable[[float], float]:
        """Returns the function that gives the tolerance at a value, from `within`."""
        if not item.has("within"):
            item.fail(None, "'within' is missing: how far may what is measured lie?")
        if isinstance(item.values["within"], MappingNode):
            each = item.sub("within", Keys((), named=self._client))
            if client not in each.values:
                each.fail(None, f"{client!r} is missing")
            return each.get(client, _tolerance(parse_one, points))
        return item.get("within", _tolerance(parse_one, points))


_OF_BEGINNINGS: Final = ("goodput", "link-share", "link-bytes", "energy-main", "energy-per-byte")

_Read = tuple[int, Form, tuple[RunGroup, ...], tuple[RunGroup, ...], Expected]

_BELOW_1: Final = math.nextafter(1.0, 0.0)
_ABOVE_1: Final = math.nextafter(1.0, 2.0)


def _kind(text: str) -> Kind:
    one_of(*KINDS)(text)
    return next(one for one in KINDS if one == text)


def _is_known(client: str) -> bool:
    return clients.is_taken(client)


def _signed(text: str) -> float:
    found = re.fullmatch(r"([+-]?)(.*)", text)
    assert found is not None
    value = units.parse_number(found[2])
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is out of range; allowed: -1 to 1")
    return -value if found[1] == "-" else value


def _range(parse_one: Callable[[str], float]) -> Callable[[str], tuple[float, float]]:
    """Returns a parser for a value, two values with 'to' between them, or 'below' a value."""

    def convert(text: str) -> tuple[float, float]:
        if text.startswith("below "):
            return -math.inf, math.nextafter(parse_one(text.removeprefix("below ")), -math.inf)
        low, _, high = text.partition(" to ")
        found = parse_one(low), parse_one(high or low)
        if found[0] > found[1]:
            raise ValueError(f"{text!r} is upside down; allowed: the lesser one first")
        return found

    return convert


def _tolerance(
    parse_one: Callable[[str], float], points: bool
) -> Callable[[str], Callable[[float], float]]:
    """Returns a parser for '10 %' of the value (percentage points if `points`), '1 s', or '10 % or
    1 s', whichever is larger."""

    def convert(text: str) -> Callable[[float], float]:
        relative = absolute = 0.0
        for part in text.split(" or "):
            if part.rstrip().endswith("%") and not points:
                relative = units.parse_ratio(part)
            else:
                absolute = parse_one(part)
        return lambda value: max(relative * abs(value), absolute)

    return convert
