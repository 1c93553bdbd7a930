"""A recorded download beside the lab's over links that are made of the record. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from linklab.field.course import LinkCourse
from linklab.field.recording import Recording

MOST_STEPS: Final = 60
"""Of how many steps a course consists at most; each is a second or longer."""


@dataclass(frozen=True, slots=True)
class Side:
    """A link in one download: frames with their headers, until when they came, round trips with and
    without queues (0 is unknown)."""

    carried_bytes: int
    finish_s: float
    rtt_s: float
    base_rtt_s: float


@dataclass(frozen=True, slots=True)
class RateStep:
    """The rates of a link between two times, in the record and in the lab."""

    start_s: float
    end_s: float
    measured_bps: float
    predicted_bps: float


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """A link in both. `off_ratio` is how far its rates are apart in a step on average, by its mean
    rate in the record."""

    link: str
    measured: Side
    predicted: Side
    steps: tuple[RateStep, ...]
    off_ratio: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A download in both. `error_ratio` is (predicted - measured) / measured."""

    contestant: str
    measured_s: float
    predicted_s: float
    links: tuple[LinkPrediction, ...]

    @property
    def error_ratio(self) -> float:
        return self.predicted_s / self.measured_s - 1


def beside(measured: Recording, predicted: Sequence[Recording]) -> Prediction:
    """A record beside the lab's runs of the same contestant, of which there has to be one: their
    median download, and the links of the run next to it."""
    middle_s = median(one.length_s for one in predicted)
    run = min(predicted, key=lambda one: abs(one.length_s - middle_s))
    courses = {one.link: one for one in run.courses}
    return Prediction(
        contestant=measured.contestant,
        measured_s=measured.length_s,
        predicted_s=middle_s,
        links=tuple(
            _link(one, courses[one.link], max(measured.length_s, run.length_s))
            for one in measured.courses
            if one.link in courses
        ),
    )


def _link(measured: LinkCourse, predicted: LinkCourse, end_s: float) -> LinkPrediction:
    count = min(MOST_STEPS, max(1, round(end_s)))
    edges = [number * end_s / count for number in range(count + 1)]
    steps = []
    for start_s, stop_s in itertools.pairwise(edges):
        rates = (_rate_bps(one, start_s, stop_s) for one in (measured, predicted))
        steps.append(RateStep(start_s, stop_s, *rates))
    mean_bps = fmean(one.measured_bps for one in steps)
    off_bps = fmean(abs(one.predicted_bps - one.measured_bps) for one in steps)
    return LinkPrediction(
        link=measured.link,
        measured=_side(measured),
        predicted=_side(predicted),
        steps=tuple(steps),
        off_ratio=off_bps / mean_bps if mean_bps else 0.0,
    )


def _side(course: LinkCourse) -> Side:
    rtts = [one.rtt_s for one in course.seen if one.rtt_s]
    bases = [one.base_rtt_s for one in course.seen if one.base_rtt_s]
    return Side(
        carried_bytes=course.carried_bytes,
        finish_s=next(
            (one.t_s for one in course.seen if one.carried_bytes == course.carried_bytes), 0.0
        ),
        rtt_s=median(rtts) if rtts else 0.0,
        base_rtt_s=min(bases) if bases else 0.0,
    )


def _rate_bps(course: LinkCourse, start_s: float, end_s: float) -> float:
    return course.carried_between(start_s, end_s) * 8 / (end_s - start_s)
