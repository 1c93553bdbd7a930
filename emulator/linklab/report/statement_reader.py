"""Reads the statements of a publication's file. `publication.py` describes the format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from yaml.nodes import MappingNode

from linklab.core import units
from linklab.models.keys import LENGTH
from linklab.report.measures import MEASURES
from linklab.report.statement import Expected, Form, RunGroup, Statement
from linklab.runs import clients
from linklab.scenario import names_in, workload_names
from linklab.scenario.workload_file import JOINED
from linklab.schema.mapping import Keys, Mapping, integer, one_of, within
from linklab.schema.quantities import TEXT, WORDS

_COMMON = (
    *("link", "kind", "why", "within", "workload", "first"),
    *("standard_errors", "computed"),
)
_OF_FORMS = (
    *("values", "correlation", "with", "cells", "better_in", "cases"),
    *("each", "over", "beside", "of", "to", "to_sum", "ratio", "difference", "is"),
)
STATEMENT: Final = Keys(("metric", "source"), (*_COMMON, *_OF_FORMS))


_CASES: Final = Keys(("each", "of", "to"), ("metric", "workload"))


class StatementReader:
    """Reads statements. `same` is the dead band of signs: ratios of 1 - same to 1 + same are the
    same, neither less nor more."""

    def __init__(self, swept: Iterable[str], same: float | None = None) -> None:
        self._same = same
        self._name = one_of(*names_in(), *swept)
        self._workload = ""
        self._first_s = 0.0

    def _scenario(self, text: str) -> str:
        """Returns the name of a scenario with the item's workload. Raises ValueError."""
        return f"{self._name(text)}{self._workload}"

    def statements(self, item: Mapping) -> Iterator[Statement]:
        """Yields the statements of one item of the list. Raises ScenarioError."""
        self._first_s = item.get_or("first", LENGTH.parse, 0.0)
        metric = item.get("metric", one_of(*MEASURES))
        measure = MEASURES[metric]
        if self._first_s and metric not in _OF_BEGINNINGS:
            item.fail(
                "first", f"{metric} is of whole runs; allowed: with {', '.join(_OF_BEGINNINGS)}"
            )
        if item.has("link") != measure.per_link:
            item.fail("link", f"{metric} is {'' if measure.per_link else 'not '}of one link")
        forms = {
            "values": self._values,
            "correlation": self._correlation,
            "better_in": self._count,
        }
        read = next((one for key, one in forms.items() if item.has(key)), self._comparison)
        for workload in self._workloads(item):
            self._workload = workload
            for line, form, of, to, expected, *cases in read(item, metric):
                other = item.get("with", one_of(*MEASURES)) if form == "correlation" else ""
                yield Statement(
                    line=line,
                    metric=metric,
                    link=item.get_or("link", TEXT.parse, ""),
                    form=form,
                    of=of,
                    to=to,
                    sums=item.has("to_sum"),
                    other=other,
                    expected=expected,
                    source=item.get("source", WORDS.parse),
                    follows=item.get_or("kind", one_of("does not follow"), "") == "",
                    why=item.get_or("why", WORDS.parse, ""),
                    standard_errors=item.get_or("standard_errors", units.parse_number, 0.0),
                    cases=tuple(cases),
                    computed=item.get_or("computed", one_of("yes"), "") == "yes",
                )

    def _workloads(self, item: Mapping) -> list[str]:
        """Returns what names of scenarios end with, for each workload of the item."""
        if not item.has("workload"):
            return [""]
        names = item.one_or_each("workload", one_of(*workload_names()))
        return [f"{JOINED}{name}" for name in names]

    def _values(self, item: Mapping, metric: str) -> Iterator[_Read]:
        scenarios = item.sub("values", Keys((), named=self._scenario))
        quantity = MEASURES[metric].quantity
        for scenario in scenarios.values:
            row = scenarios.sub(scenario, Keys((), named=_client))
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
        to_key = "to_sum" if item.has("to_sum") else "to"
        where = "over" if item.has("over") else "each"
        _need(item, "of", to_key, where)
        scenarios = item.each(where, self._scenario)
        to = item.each(to_key, _client)
        beside = item.get("beside", self._scenario) if item.has("beside") else ""
        line = item.node.start_mark.line + 1
        for of in item.one_or_each("of", _client):
            form, expected = self._comparison_expected(item, metric, of)
            for together in [[one] for one in scenarios] if where == "each" else [scenarios]:
                yield (
                    line,
                    form,
                    tuple(RunGroup(one, of, self._first_s) for one in together),
                    tuple(
                        RunGroup(one, client, self._first_s)
                        for one in ([beside] if beside else together)
                        for client in to
                    ),
                    expected,
                )

    def _comparison_expected(self, item: Mapping, metric: str, of: str) -> tuple[Form, Expected]:
        if item.has("is"):
            word = item.get("is", one_of("less", "more", "same"))
            if word != "same":
                return "ratio", self._sign(word)
            if self._same is not None and not item.has("within"):
                reach = self._same
            else:
                reach = self._reach(item, of, units.parse_ratio, points=True)(1.0)
            return "ratio", Expected(1 - reach, 1 + reach, "the same", 1.0)
        form: Form = "difference" if item.has("difference") else "ratio"
        _need(item, form)
        parse_one = units.parse_ratio if form == "ratio" else MEASURES[metric].quantity.parse
        low, high = item.get(form, _range(parse_one))
        said = item.get(form, TEXT.parse)
        return form, self._around(item, of, low, high, said, parse_one, points=form == "ratio")

    def _sign(self, word: str) -> Expected:
        """Returns what less or more means, beyond what is the same."""
        same = self._same or 0.0
        if word == "less":
            return Expected(-math.inf, math.nextafter(1 - same, 0.0), word)
        return Expected(math.nextafter(1 + same, math.inf), math.inf, word)

    def _count(self, item: Mapping, metric: str) -> Iterator[_Read]:
        """Reads in how many cases, one for each scenario, one of the clients is better."""
        _need(item, "better_in", "cases", "within")
        cases = []
        for each in item.items("cases", _CASES):
            of_metric = each.get_or("metric", one_of(*MEASURES), metric)
            better = "more" if MEASURES[of_metric].more_is_better else "less"
            for workload in self._workloads(each):
                self._workload = workload
                of, to = each.one_or_each("of", _client), each.each("to", _client)
                for scenario in each.each("each", self._scenario):
                    cases.append(
                        tuple(
                            Statement(
                                line=each.node.start_mark.line + 1,
                                metric=of_metric,
                                link="",
                                form="ratio",
                                of=(RunGroup(scenario, client),),
                                to=tuple(RunGroup(scenario, one) for one in to),
                                expected=self._sign(better),
                                source=item.get("source", WORDS.parse),
                            )
                            for client in of
                        )
                    )
        count = item.get("better_in", within(integer, 0, len(cases), f"0 to {len(cases)}"))
        reach = item.get("within", within(integer, 0, len(cases), f"0 to {len(cases)}"))
        signs = [one for case in cases for one in case]
        yield (
            item.node.start_mark.line + 1,
            "count",
            tuple(dict.fromkeys(cell for one in signs for cell in one.of)),
            tuple(dict.fromkeys(cell for one in signs for cell in one.to)),
            Expected(count - reach, count + reach, f"{count}", count, (count, count)),
            *cases,
        )

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
        if low == -math.inf:
            return Expected(low, high, said)
        if low < high and not item.has("within"):
            return Expected(low, high, said, published=(low, high))
        reach = self._reach(item, client, parse_one, points=points)(max(abs(low), abs(high)))
        single = low if low == high else None
        return Expected(low - reach, high + reach, said, single, (low, high))

    def _correlation(self, item: Mapping, metric: str) -> Iterator[_Read]:
        _need(item, "correlation", "with", "cells", "within")
        value = item.get("correlation", float)
        reach = item.get("within", within(units.parse_number, 0.0, 2.0, "0 to 2"))
        rows = item.sub("cells", Keys((), named=self._scenario))
        cells = tuple(
            RunGroup(scenario, client, self._first_s)
            for scenario in rows.values
            for client in rows.each(scenario, _client)
        )
        said = item.get("correlation", TEXT.parse)
        yield (
            item.node.start_mark.line + 1,
            "correlation",
            cells,
            (),
            Expected(value - reach, value + reach, said, value, (value, value)),
        )

    def _reach(
        self, item: Mapping, client: str, parse_one: Callable[[str], float], *, points: bool = False
    ) -> Callable[[float], float]:
        """Returns the function that gives the tolerance at a value, from `within`."""
        _need(item, "within")
        if isinstance(item.values["within"], MappingNode):
            each = item.sub("within", Keys((), named=_client))
            _need(each, client)
            return each.get(client, _tolerance(parse_one, points))
        return item.get("within", _tolerance(parse_one, points))


_OF_BEGINNINGS: Final = ("goodput", "link-share", "link-bytes", "energy-main", "energy-per-byte")

_Read = tuple[
    int,
    Form,
    tuple[RunGroup, ...],
    tuple[RunGroup, ...],
    Expected,
    *tuple[tuple[Statement, ...], ...],
]


def _client(text: str) -> str:
    """Checks that a client is known. Raises ValueError."""
    return text if clients.is_taken(text) else one_of(*clients.names(clients.USUAL_LINKS))(text)


def _need(item: Mapping, *keys: str) -> None:
    """Raises ScenarioError unless an item has these keys."""
    for key in keys:
        if not item.has(key):
            item.fail(None, f"{key!r} is missing; needed: {', '.join(keys)}")


def _range(parse_one: Callable[[str], float]) -> Callable[[str], tuple[float, float]]:
    """Returns a parser for a value, two values with 'to' between them, or 'below' a value."""

    def convert(text: str) -> tuple[float, float]:
        if text.startswith("below "):
            return -math.inf, math.nextafter(parse_one(text.removeprefix("below ")), -math.inf)
        low, _, high = text.partition(" to ")
        return parse_one(low), parse_one(high or low)

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
