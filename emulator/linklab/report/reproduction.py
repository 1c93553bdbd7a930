"""Published results beside measured ones: which cells there are, and how close is close. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # The command line needs the names of publications only, and quickly.
    from linklab.runs.comparison import Comparison
    from linklab.scenario import Scenario

PUBLICATIONS: Final = {"thesis": ("hs-s6", "hs-s7", "ls", "ts", "tm", "ao")}
"""The scenarios of a publication, in the order of its tables (thesis table 5.12)."""

CALIBRATION: Final = ("single-wifi", "single-lte")
"""The links of a scenario were given the rates that these rows state, on other seeds
(`calibration.py`): they show that the links are right, not that an algorithm is."""

TOLERANCES: Final = {
    "single-wifi": 0.05,
    "single-lte": 0.05,
    "naive": 0.05,
    "alg1": 0.15,
    "alg2": 0.15,
    "alg3": 0.10,
}
"""How far a median may lie from the published one: one value per algorithm, whatever the
scenario. Those of outcomes are what a fluid model of the thesis' links leaves unexplained.
Those of links are two standard errors of a median of ten runs, 1.2533 σ/√n, of an LTE trace
whose means over a download stray by 6 %."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of one scenario. `measured_s` is None where no run came to a figure; then it is
    outside. `error_ratio` is (measured - published) / published."""

    scenario: str
    algorithm: str
    published_s: float
    measured_s: float | None
    error_ratio: float | None
    tolerance: float
    inside: bool
    calibration: bool


@dataclass(frozen=True, slots=True)
class Count:
    """How many of some cells are inside their tolerance."""

    inside: int
    cells: int


def cells(scenarios: Sequence[Scenario], comparisons: Mapping[str, Comparison]) -> list[Cell]:
    """A cell for every published figure of the scenarios; `comparisons` by scenario name."""
    found = []
    for scenario in scenarios:
        rows = {row.algorithm: row for row in comparisons[scenario.name].rows}
        for published in scenario.published:
            row = rows[published.algorithm]
            error = row.error_ratio
            tolerance = TOLERANCES[published.algorithm]
            found.append(
                Cell(
                    scenario=scenario.name,
                    algorithm=published.algorithm,
                    published_s=published.download_s,
                    measured_s=row.download_s.median if row.download_s else None,
                    error_ratio=error,
                    tolerance=tolerance,
                    inside=error is not None and abs(error) <= tolerance,
                    calibration=published.algorithm in CALIBRATION,
                )
            )
    return found


def count(cells: Sequence[Cell], *, calibration: bool) -> Count:
    """The cells of one kind: calibration, or outcomes."""
    chosen = [cell for cell in cells if cell.calibration == calibration]
    return Count(sum(cell.inside for cell in chosen), len(chosen))
