"""Compares how many statements hold in the lab with rules that measure nothing. Pure.

A *constant rule* has one answer for all statements of a form: MPTCP is always worse, a ratio is always
1, a share is always 100 %. Of all constants the best one counts, chosen after looking at the
publication. *Arithmetic* knows the rates of the links and no more (`arithmetic.py`). The lab's *skill* is
the number of statements that hold in the lab beyond the better of both rules.

The interval is a percentile bootstrap (Efron). Each draw takes seeds and statements with replacement,
because other seeds and other statements might have said otherwise. In each draw the best constants are
chosen anew. Random verdicts have an interval around 0 (`skill_test.py`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from linklab.core.statistics import RESAMPLES, Interval, Numbers
from linklab.report.statement import Statement

LEVEL: Final = 0.95

Hits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Constant:
    """Holds the best constant answer to the statements of a form: in words, and how many it hits."""

    form: str
    answer: str
    hits: int
    of: int


@dataclass(frozen=True, slots=True)
class Skill:
    """Holds how many of `of` statements the lab and both rules hit. `only_lab` hold in the lab, and not
    by the better rule, `only_rule` the other way round. `constants` has the best one of each form."""

    of: int
    lab: int
    constant: int
    arithmetic: int
    only_lab: int
    only_rule: int
    interval: Interval
    constants: tuple[Constant, ...]

    @property
    def better(self) -> int:
        """What the better one of the two rules hits."""
        return max(self.constant, self.arithmetic)

    @property
    def skill(self) -> int:
        """The statements that hold in the lab beyond the better rule."""
        return self.lab - self.better


def draws(runs: int, seed: int = 0) -> Numbers:
    """Returns the draws of runs: a row for each draw, with numbers from 0 to below 1 that say which
    of a cell's runs it takes."""
    return np.random.default_rng(seed).random((RESAMPLES, runs))


def judge(
    statements: Sequence[Statement], lab: Hits, redrawn: Hits, arithmetic: Hits, seed: int = 1
) -> Skill:
    """Judges the lab by its hits and those of arithmetic, one for each statement. `redrawn` has a row
    of the lab's hits for each draw of seeds."""
    count = len(statements)
    groups: dict[Hashable, list[int]] = {}
    for index, one in enumerate(statements):
        groups.setdefault(_form(one), []).append(index)
    tables = {form: _Constants([statements[n] for n in which]) for form, which in groups.items()}
    taken = np.random.default_rng(seed).multinomial(
        count, np.full(count, 1 / count), size=len(redrawn)
    )
    constants = np.zeros(len(redrawn))
    best: list[Constant] = []
    by_constant = np.zeros(count, dtype=np.bool_)
    for form, which in groups.items():
        table = tables[form]
        constants += table.most(taken[:, which])
        hits, answer = table.best()
        by_constant[which] = hits
        best.append(Constant(_title(statements[which[0]]), answer, int(hits.sum()), len(which)))
    rules = np.maximum(constants, taken @ arithmetic)
    beyond = (taken * redrawn).sum(axis=1) - rules
    low, high = np.percentile(beyond, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    better = by_constant if by_constant.sum() >= arithmetic.sum() else arithmetic
    return Skill(
        of=count,
        lab=int(lab.sum()),
        constant=int(by_constant.sum()),
        arithmetic=int(arithmetic.sum()),
        only_lab=int((lab & ~better).sum()),
        only_rule=int((better & ~lab).sum()),
        interval=Interval(float(low), float(high)),
        constants=tuple(best),
    )


class _Constants:
    """Holds the possible answers to the statements of a form, and which statements each hits."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        if statements[0].is_sign:
            said = [_sign(one) for one in statements]
            self._answers = sorted(set(said))
            self._hits = np.array([[one == answer for one in said] for answer in self._answers])
            return
        low, high = np.array([_limits(one) for one in statements]).T
        # Limits are included, so that one of the lower ones lies within as many as any constant.
        values = np.unique(low)
        self._hits = (low <= values[:, None]) & (values[:, None] <= high)
        self._answers = [
            _middle(statements[int(hits.argmax())], low[hits].max(), high[hits].min())
            for hits in self._hits
        ]

    def most(self, taken: NDArray[np.int64]) -> Any:
        """Returns for each draw what the best constant hits."""
        return (taken @ self._hits.T).max(axis=1)

    def best(self) -> tuple[Hits, str]:
        """Returns what the best constant hits, and its answer in words."""
        index = int(self._hits.sum(axis=1).argmax())
        return self._hits[index], f"always {self._answers[index]}"


def _sign(one: Statement) -> str:
    """Returns what a sign says of the client: better, worse, or the same."""
    if one.expected.text == "the same":
        return "the same"
    return "better" if (one.expected.text == "more") == one.measure.more_is_better else "worse"


def _middle(one: Statement, low: float, high: float) -> str:
    """Returns the middle of the values that the statements of a constant have in common."""
    value = (low + high) / 2 if math.isfinite(high - low) else high if math.isinf(low) else low
    if one.form == "ratio" and one.measure.more_is_better:
        value = 1 / value if value else math.inf
    return one.say(float(value))


def _form(one: Statement) -> Hashable:
    """Identifies the statements that one constant answers. Values and differences have a unit."""
    if one.form in ("value", "difference"):
        return one.form, one.metric
    return "sign" if one.is_sign else one.form


def _title(one: Statement) -> str:
    if one.form in ("value", "difference"):
        return f"{one.form} of {one.measure.words}"
    return "signs" if one.is_sign else f"{one.form}s"


def _limits(one: Statement) -> tuple[float, float]:
    """Returns the limits of the constant. Ratios are of cost: of measures of which more is better,
    the inverse."""
    low, high = one.expected.low, one.expected.high
    if one.form != "ratio" or not one.measure.more_is_better:
        return low, high
    return 1 / high if high else math.inf, 1 / low if low > 0 else math.inf
