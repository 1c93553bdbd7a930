"""Computes a workload's own figures, besides the bytes that it moved. Pure.

A *new figure* is an entry of FIGURES, under its name in multilink's `workload.json`. If it comes from
elsewhere, its `by_lab` is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from linklab.core.bounded import ByName, Bytes, Figure, Name, Nanoseconds, Words
from linklab.runs.run_figures import FigureError


class WorkloadSummary(msgspec.Struct, frozen=True):
    """Holds multilink's `workload.json`. Keys that a later version adds are ignored."""

    workload: Name
    outcome: Name
    duration_ns: Nanoseconds
    bytes: Bytes
    figures: ByName[Figure] | None
    error: Words = ""


@dataclass(frozen=True, slots=True)
class WorkloadFigure:
    """Defines a figure of one workload. `title` is for people, `column` for a table's heading, in
    up to two lines. `unit` is seconds, or "" for counts. Smaller is better for each. The lab measures
    `by_lab`, if it can; the others are in every `workload.json`."""

    workload: str
    title: str
    column: str
    unit: Literal["s", ""] = "s"
    by_lab: bool = False

    def text(self, value: float) -> str:
        """Writes a value with its unit. A median of counts may end in .5."""
        return f"{value:.3f} s" if self.unit else f"{value:.1f}".removesuffix(".0")


ROUND_TRIP: Final = "round_trip_s"

FIGURES: Final[dict[str, WorkloadFigure]] = {
    "startup_s": WorkloadFigure("player", "time until playing begins", "start\ns"),
    "interruptions": WorkloadFigure("player", "interruptions of playing", "inter-\nruptions", ""),
    "interrupted_s": WorkloadFigure("player", "how long playing stood still", "still\ns"),
    "playback_s": WorkloadFigure("player", "time until all is played", "played\ns"),
    "page_load_s": WorkloadFigure("page", "time to load the page", "loaded\ns"),
    "document_s": WorkloadFigure("page", "time to load its document", "docum.\ns"),
    "object_s": WorkloadFigure("page", "median time of an object", "object\ns"),
    "latency_s": WorkloadFigure("rounds", "median time of a round", "median\ns"),
    "latency_p90_s": WorkloadFigure("rounds", "90th percentile of a round's time", "p90\ns"),
    "latency_p99_s": WorkloadFigure("rounds", "99th percentile of a round's time", "p99\ns"),
    "latency_max_s": WorkloadFigure("rounds", "longest round", "max\ns"),
    ROUND_TRIP: WorkloadFigure("rounds", "mean round trip of TCP", "RTT\ns", by_lab=True),
    "late": WorkloadFigure("paced", "pieces that came late", "late", ""),
    "lateness_s": WorkloadFigure("paced", "median lateness", "median\ns"),
    "lateness_p90_s": WorkloadFigure("paced", "90th percentile of lateness", "p90\ns"),
    "lateness_max_s": WorkloadFigure("paced", "most lateness", "max\ns"),
}


def of_workload(name: str) -> dict[str, WorkloadFigure]:
    """Returns the figures of a workload, in the order in which they are shown."""
    return {key: one for key, one in FIGURES.items() if one.workload == name}


def in_words(key: str, value: float) -> str:
    """Writes a figure for people: `interruptions of playing: 2`."""
    figure = FIGURES[key]
    return f"{figure.title}: {figure.text(value)}"


def checked(summary: WorkloadSummary, name: str, size_bytes: int) -> dict[str, float]:
    """Returns the figures of a workload that completed as expected. Raises FigureError."""
    if summary.outcome != "complete":
        why = summary.error or "no reason given"
        raise FigureError(f"the {summary.workload} is {summary.outcome}: {why}")
    if summary.workload != name:
        raise FigureError(f"the workload was {summary.workload} instead of {name}")
    if summary.bytes != size_bytes:
        raise FigureError(f"{summary.bytes} bytes arrived instead of {size_bytes}")
    figures = summary.figures or {}
    own = [key for key, one in of_workload(name).items() if not one.by_lab]
    missing = [key for key in own if key not in figures]
    if missing:
        raise FigureError(f"workload.json has no {', '.join(missing)}")
    return {key: figures[key] for key in own}
