"""Limits the tolerances of downloads by the spread of a publication's own runs. Pure.

A published time is a median of n runs. So is the lab's. Their difference has a standard error of
√2 · 1.2533 · σ / √n, for normally distributed times. The publication has no σ of the times. It has
those of the links' rates, from which it follows: the time is inverse to the sum of the rates, and the
links stray independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from linklab.report.statement import Expected, RunGroup, Statement

MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
"""Standard error of a median of many normally distributed values, in units of that of their mean."""


def limited(statements: Sequence[Statement], runs: int) -> tuple[Statement, ...]:
    """Returns the statements with tolerances of at most `standard_errors`."""
    return tuple(
        one if not one.standard_errors else _limited(one, statements, runs) for one in statements
    )


def _limited(statement: Statement, statements: Iterable[Statement], runs: int) -> Statement:
    value = statement.expected.value
    assert value is not None, "standard_errors needs single values"
    cell = statement.of[0]
    reach = statement.standard_errors * standard_error(cell, statements, runs) * value
    expected = statement.expected
    return replace(
        statement,
        expected=Expected(
            max(expected.low, value - reach),
            min(expected.high, value + reach),
            expected.text,
            value,
            expected.published,
        ),
    )


def standard_error(cell: RunGroup, statements: Iterable[Statement], runs: int) -> float:
    """Returns the standard error of the difference of two median times, relative to the time."""
    rates: dict[str, float] = {}
    deviations: dict[str, float] = {}
    for one in statements:
        found = {"link-rate": rates, "link-deviation": deviations}.get(one.metric)
        value = one.expected.value
        if found is not None and one.form == "value" and one.of == (cell,) and value is not None:
            found[one.link] = value
    variation = math.hypot(*(deviations[link] for link in rates)) / sum(rates.values())
    return math.sqrt(2) * MEDIAN_ERROR * variation / math.sqrt(runs)
