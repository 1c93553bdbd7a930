"""Compares a recorded download with the lab's runs over links made from the recording. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from linklab.field.link_history import LinkHistory
from linklab.field.recording import Recording

MOST_STEPS: Final = 60
"""The largest number of steps of a comparison; each step lasts 1 s or longer."""


@dataclass(frozen=True, slots=True)
class Side:
    """A link in one download.

    Attributes:
        carried_bytes: in frames with their headers.
        finish_s: time of the last frame.
        rtt_s, base_rtt_s: round trips with and without queues; 0 if unknown.
    """

    carried_bytes: int
    finish_s: float
    rtt_s: float
    base_rtt_s: float


@dataclass(frozen=True, slots=True)
class RateStep:
    """The rates of a link between two times, in the recording and in the lab."""

    start_s: float
    end_s: float
    measured_bps: float
    predicted_bps: float


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """A link in the recording and in the lab.

    `off_ratio` is the mean difference of the rates in a step, divided by the recorded mean rate.
    """

    link: str
    measured: Side
    predicted: Side
    steps: tuple[RateStep, ...]
    off_ratio: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A download in the recording and in the lab.

    `error_ratio` is (predicted - measured) / measured.
    """

    contestant: str
    measured_s: float
    predicted_s: float
    links: tuple[LinkPrediction, ...]

    @property
    def error_ratio(self) -> float:
        return self.predicted_s / self.measured_s - 1


def beside(measured: Recording, predicted: Sequence[Recording]) -> Prediction:
    """Compares a recording with the lab's runs of the same client, at least one.

    The time is the median of the runs. The links are those of the run next to the median.
    """
    middle_s = median(one.length_s for one in predicted)
    run = min(predicted, key=lambda one: abs(one.length_s - middle_s))
    histories = {one.link: one for one in run.histories}
    return Prediction(
        contestant=measured.contestant,
        measured_s=measured.length_s,
        predicted_s=middle_s,
        links=tuple(
            _link(one, histories[one.link], max(measured.length_s, run.length_s))
            for one in measured.histories
            if one.link in histories
        ),
    )


def _link(measured: LinkHistory, predicted: LinkHistory, end_s: float) -> LinkPrediction:
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


def _side(history: LinkHistory) -> Side:
    rtts = [one.rtt_s for one in history.samples if one.rtt_s]
    bases = [one.base_rtt_s for one in history.samples if one.base_rtt_s]
    return Side(
        carried_bytes=history.carried_bytes,
        finish_s=next(
            (one.t_s for one in history.samples if one.carried_bytes == history.carried_bytes), 0.0
        ),
        rtt_s=median(rtts) if rtts else 0.0,
        base_rtt_s=min(bases) if bases else 0.0,
    )


def _rate_bps(history: LinkHistory, start_s: float, end_s: float) -> float:
    return history.carried_between(start_s, end_s) * 8 / (end_s - start_s)
