"""Finds statements that hold whatever the lab emulates, from their clients and links alone.

They hold by arithmetic: linklab computed what is stated; two clients use one link, or links of one
rate; fixed parts of a file come over links whose rates were fitted; another statement says as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from linklab.report.statement import RunGroup, Statement
from linklab.report.statement_kinds import EQUAL_PARTS
from linklab.report.unknowns import Unknown
from linklab.runs.clients import registry
from linklab.scenario import LinkSettings, Scenario

OF_RATES: Final = (
    *("download", "goodput", "playback", "page-load", "page-load-from-first-byte"),
    *("link-delta", "link-rate"),
)
"""The measures that follow from the rates of links alone, for clients that do not choose."""

Limits = tuple[float, float]


def marked(
    statements: Sequence[Statement],
    fits: Iterable[Unknown],
    scenario_of: Callable[[str], Scenario],
) -> tuple[Statement, ...]:
    """Returns the statements with `constructed`."""
    fits = list(fits)
    found = [replace(one, constructed=_by_links(one, fits, scenario_of)) for one in statements]
    for index in reversed(range(len(found))):
        others = [
            one
            for n, one in enumerate(found)
            if n != index and one.follows and not one.constructed.startswith(_TWICE)
        ]
        if not found[index].constructed and (line := _said_by(found[index], others)):
            found[index] = replace(found[index], constructed=f"{_TWICE} line {line} says as much")
    return tuple(found)


_TWICE: Final = "said twice:"


def _by_links(
    one: Statement, fits: Sequence[Unknown], scenario_of: Callable[[str], Scenario]
) -> str:
    if one.computed:
        return "linklab computed what is stated"
    clients = {cell.client for cell in one.cells}
    scenarios = {cell.scenario: scenario_of(cell.scenario) for cell in one.cells}
    if not all(name in registry.names(registry.USUAL_LINKS) for name in clients):
        return ""
    used = [
        (where, registry.link_by_definition(cell.client, where.links))
        for cell in one.cells
        for where in (scenarios[cell.scenario],)
    ]
    links = [scenario.links[name] for scenario, name in used if name is not None]
    if len(links) == len(one.cells):
        names = {name for _, name in used}
        if one.metric == "link-share" and names == {one.link} and one.expected.accepts(1.0, 1.0):
            return "the client uses this link alone, by its definition"
        if one.expected.text == "the same" and len(clients) > 1:
            if len(names) == 1 and any(registry.client_of(name).multipath for name in clients):
                return "all use the same link alone, by their definition"
            if one.metric in OF_RATES and len(names) > 1 and _are_alike(links, scenarios):
                return "the links have the same rates"
    fixed = all(name in EQUAL_PARTS or registry.only_link(name) for name in clients)
    if (
        fixed
        and one.metric in OF_RATES
        and all(_is_fitted(cell, fits, scenarios) for cell in one.cells)
    ):
        return "fixed parts of the file come over links whose rates were fitted"
    return ""


def _are_alike(links: Iterable[LinkSettings], scenarios: Mapping[str, Scenario]) -> bool:
    """Tells whether links have constant rates, and the same ones."""
    return not any(one.events for one in scenarios.values()) and (
        len({(one.down_rate_bps, one.up_rate_bps) for one in links}) == 1
    )


def _is_fitted(cell: RunGroup, fits: Iterable[Unknown], scenarios: dict[str, Scenario]) -> bool:
    """Tells whether the rates of the links that a client uses were fitted to what each carries alone."""
    only = registry.only_link(cell.client)
    links = scenarios[cell.scenario].links if only is None else [only]
    return all(
        any(
            one.covers(metric, "", cell.scenario, f"single-{link}")
            for one in fits
            for metric in ("download", "goodput")
        )
        for link in links
    )


def _said_by(one: Statement, others: Iterable[Statement]) -> int:
    """Returns the line of a statement that says as much as another, 0 if none does."""
    needed = _claims(one)
    if not needed or one.form != "ratio" or len(one.of) != 1:
        return 0
    for other in others:
        if other.form != "ratio" or len(other.of) != 1:
            continue
        if (other.metric, other.link, other.of[0].scenario) != (
            one.metric,
            one.link,
            one.of[0].scenario,
        ):
            continue
        known = _pairs(other)
        if all(
            pair in known and low <= known[pair][0] and known[pair][1] <= high
            for pair, (low, high) in needed.items()
        ):
            return other.line
    return 0


def _claims(one: Statement) -> dict[tuple[RunGroup, RunGroup], Limits]:
    """Returns the limits between pairs of cells that make up a statement. Empty if pairs do not."""
    expected = one.expected
    one_sided = math.isinf(expected.high if one.measure.more_is_better else expected.low)
    if one.sums or (len(one.to) > 1 and not one_sided):
        return {}
    return {(one.of[0], to): (expected.low, expected.high) for to in one.to}


def _pairs(one: Statement) -> dict[tuple[RunGroup, RunGroup], Limits]:
    """Returns the limits between pairs of cells that follow from a statement, in both orders."""
    if one.sums:
        return {}
    low, high = one.expected.low, one.expected.high
    if len(one.to) > 1:  # Beside the best of several, one limit holds beside each.
        low, high = (low, math.inf) if one.measure.more_is_better else (-math.inf, high)
    found: dict[tuple[RunGroup, RunGroup], Limits] = {}
    for to in one.to:
        found[one.of[0], to] = low, high
        least = 0.0 if math.isinf(high) else 1 / high
        found[to, one.of[0]] = least, 1 / low if low > 0 else math.inf
    return found
