"""Finds which statements of a publication are no evidence, from published figures alone. Pure.

A statement whose figures were all fitted is *calibration*. So is one that a constant can move which was
chosen after looking. A statement that holds whatever the lab emulates is *by construction*
(`by_construction.py`). A statement whose tolerance also accepts another algorithm's published figure
*cannot discriminate*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from linklab.report.statement import Statement
from linklab.report.unknowns import Unknown

EQUAL_PARTS: Final = ("naive", "gb-half")
"""The clients that give each link the same share of the bytes. Others keep all links busy."""


def classified(
    statements: Sequence[Statement], fits: Iterable[Unknown], same: Collection[Collection[str]]
) -> tuple[Statement, ...]:
    """Returns the statements with `fitted_by` and `also_accepts`. Each of `same` lists clients that
    run one algorithm of the publication."""
    fits = list(fits)
    rows: dict[tuple[object, ...], list[Statement]] = {}
    for one in statements:
        rows.setdefault(_row(one), []).append(one)
    return tuple(
        replace(
            one,
            fitted_by=fitted_by(one, fits),
            also_accepts=tuple(dict.fromkeys(_others(one, rows[_row(one)], same))),
        )
        for one in statements
    )


def fitted_by(statement: Statement, fits: Iterable[Unknown]) -> tuple[str, ...]:
    """Names what was fitted to the figures of a statement. Empty unless all of them were fitted, or a
    constant can move its verdict."""
    fits = list(fits)
    if movers := tuple(one.what for one in fits if _moves(one, statement)):
        return movers
    found: dict[str, None] = {}
    for metric in statement.metrics:
        for cell in statement.cells:
            covering = [
                one.what
                for one in fits
                if one.covers(metric, statement.link, cell.scenario, cell.client)
            ]
            if not covering:
                return ()
            found.update(dict.fromkeys(covering))
    return tuple(found)


def _moves(fit: Unknown, statement: Statement) -> bool:
    """Tells whether a constant moves a client that a statement is about, or what is beside it: the only
    client there, or a part of their sum."""
    counts = statement.sums or len({one.client for one in statement.to}) == 1
    beside = statement.to if counts else ()
    return any(
        one.covers(metric, statement.link, cell.scenario, cell.client)
        for one in fit.moves
        for metric in statement.metrics
        for cell in (*statement.of, *beside)
    )


def unstated(fit: Unknown, statements: Iterable[Statement]) -> list[str]:
    """Lists the measures and cells of a fit that no statement is about, in words."""
    stated = {
        (metric, one.link, cell.scenario, cell.client)
        for one in statements
        for metric in one.metrics
        for cell in one.cells
    }
    found: dict[str, None] = {}
    for figures in (*fit.fitted_to, *fit.moves):
        met = [one for one in stated if figures.covers(*one)]
        measures = {metric for metric, *_ in met}
        cells = {(scenario, client) for _, _, scenario, client in met}
        found.update(dict.fromkeys(one for one in figures.metrics if one not in measures))
        found.update(
            (f"{scenario} {client}", None)
            for scenario, clients in figures.cells.items()
            for client in clients
            if (scenario, client) not in cells
        )
    return list(found)


def _others(
    statement: Statement, row: Iterable[Statement], same: Collection[Collection[str]]
) -> Iterator[str]:
    """Yields the other algorithms of a row whose published figures a statement also accepts."""
    expected = statement.expected
    if expected.published is None or statement.form == "correlation":
        return
    if statement.to and not statement.sums:
        equal = 1.0 if statement.form == "ratio" else 0.0
        if expected.accepts(equal, equal):
            yield from dict.fromkeys(one.client for one in statement.to)
    for other in row:
        published = other.expected.published
        if (
            published is not None
            and not _is_one_algorithm(other, statement, same)
            and expected.accepts(*published)
        ):
            yield other.of[0].client


def _row(one: Statement) -> tuple[object, ...]:
    """Identifies the row of a publication's table in which the figures of all clients stand."""
    where = tuple((cell.scenario, cell.first_s) for cell in one.of)
    return one.form, one.metric, one.link, one.source, where, one.to, one.sums


def _is_one_algorithm(
    first: Statement, second: Statement, same: Collection[Collection[str]]
) -> bool:
    clients = {first.of[0].client, second.of[0].client}
    return len(clients) == 1 or any(clients <= set(group) for group in same)
