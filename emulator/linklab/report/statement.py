"""Defines a publication's statements, and which runs each is about. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from linklab.core import units
from linklab.report.measures import MEASURES, Measure

Kind = Literal[
    "calibration", "by construction", "outcome", "cannot discriminate", "does not follow"
]

KINDS: Final[tuple[Kind, ...]] = (
    *("calibration", "by construction", "outcome"),
    *("cannot discriminate", "does not follow"),
)

SIGNS: Final = ("less", "more", "the same")

Form = Literal["value", "ratio", "difference", "correlation", "count"]


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

    `text` is the publication's text. `value` is the published number if there is a single one.
    `published` is the published range without a tolerance, None for a sign (less, more, the same).
    """

    low: float
    high: float
    text: str
    value: float | None = None
    published: tuple[float, float] | None = None

    def accepts(self, low: float, high: float) -> bool:
        """Tells whether a value from `low` to `high` agrees."""
        return self.low <= high and low <= self.high


@dataclass(frozen=True, slots=True)
class Statement:
    """Holds one statement of a publication.

    `of` and `to` are cells (RunGroup). A *value* has one `of`. A *ratio* or *difference* has one
    `of` per scenario, and in `to` the cells of the same scenario, or of one other for all. The best of them counts, or their
    sum if `sums`. A *correlation* relates `metric` and `other` over all of `of`. A *count* is of the
    `cases` in which one of a case's signs holds. `why` explains a
    known disagreement, or is "".

    `follows` is False if the statement cannot follow from the publication's own figures.
    `fitted_by` names the models and constants that were fitted to its figures, or that can change its
    verdict. `computed` tells whether linklab computed what is stated. `constructed` says why it holds
    whatever the lab emulates, or is "". `also_accepts` names
    other algorithms whose published figures agree with it, too. `standard_errors` limits its
    tolerance (`spread.py`), 0 is no limit.
    """

    line: int
    metric: str
    link: str
    form: Form
    of: tuple[RunGroup, ...]
    expected: Expected
    source: str
    follows: bool = True
    to: tuple[RunGroup, ...] = ()
    sums: bool = False
    other: str = ""
    why: str = ""
    fitted_by: tuple[str, ...] = ()
    computed: bool = False
    constructed: str = ""
    also_accepts: tuple[str, ...] = ()
    standard_errors: float = 0.0
    cases: tuple[tuple[Statement, ...], ...] = ()

    @property
    def kind(self) -> Kind:
        """What the statement can show if it holds."""
        if not self.follows:
            return "does not follow"
        if self.fitted_by:
            return "calibration"
        if self.constructed:
            return "by construction"
        return "cannot discriminate" if self.also_accepts else "outcome"

    @property
    def is_sign(self) -> bool:
        """Whether it only says less, more, or the same."""
        return self.form == "ratio" and self.expected.text in SIGNS

    @property
    def metrics(self) -> tuple[str, ...]:
        """The measures that the statement is about."""
        if self.cases:
            return tuple(dict.fromkeys(one.metric for case in self.cases for one in case))
        return (self.metric, self.other) if self.other else (self.metric,)

    @property
    def cells(self) -> tuple[RunGroup, ...]:
        """All cells whose runs the statement needs."""
        return tuple(dict.fromkeys((*self.of, *self.to)))

    def beside(self, cell: RunGroup) -> list[RunGroup]:
        """Returns the cells that one of `of` is compared with."""
        own = [one for one in self.to if one.scenario == cell.scenario]
        return own or list(self.to)

    @property
    def measure(self) -> Measure:
        return MEASURES[self.metric]

    @property
    def real_clock(self) -> bool:
        """Whether only runs on the real clock can check the statement."""
        return any(MEASURES[one].real_clock for one in self.metrics)

    @property
    def words(self) -> str:
        """What is compared, without the measure: `hs-s6 alg3`, `ts, tm, ao: alg3 to naive`."""
        return f"{self.where}{'' if self.form == 'value' else ':'} {self.compared_clients}"

    @property
    def where(self) -> str:
        """The statement's scenarios, joined by commas."""
        if self.cases:
            return f"{len(self.cases)} cases"
        return ", ".join(dict.fromkeys(one.scenario for one in self.of))

    @property
    def compared_clients(self) -> str:
        """The clients compared: `alg3`, `alg3 to naive`, `alg3 to the best of naive, alg1`."""
        client = ", ".join(dict.fromkeys(one.client for one in self.of))
        if not self.to:
            return client
        than = list(dict.fromkeys(one.client for one in self.to))
        together = "the sum of " if self.sums else "the best of " if len(than) > 1 else ""
        elsewhere = ", ".join(dict.fromkeys(one.scenario for one in self.to))
        where = (
            ""
            if {one.scenario for one in self.of} & {one.scenario for one in self.to}
            else elsewhere
        )
        return f"{client} to {together}{', '.join(than)}{where and f' in {where}'}"

    @property
    def title(self) -> str:
        """The measure in words, with its link and time."""
        if self.cases:
            words = ", ".join(MEASURES[one].words for one in self.metrics)
            return f"number of cases with better {words}"
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
        if self.form == "count":
            return f"{value:.0f}"
        return self.measure.say(value)
