"""Computes a trace's statistics: mean, variation, autocorrelation, gaps. Pure.

The variation is that of means over bins, by default of 1 s, like published figures of driving
traces.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Final

from linklab.traces.trace import NS_PER_S, TraceSample

BIN_S: Final = 1.0

GAP_S: Final = 0.5
"""A longer time without capacity is a gap."""

DARK_BPS: Final = 1_000
"""Below this rate a link carries nothing."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of one direction of a trace.

    Attributes:
        cv: coefficient of variation of the bins' means (standard deviation / mean).
        autocorrelation_1s, autocorrelation_10s: of the bins' means.
        gaps: number of times without capacity longer than 0.5 s.

    `cv` and the autocorrelations are None if the trace is too short or constant, or if the bins do
    not divide the lag.
    """

    duration_s: float
    mean_bps: float
    cv: float | None
    autocorrelation_1s: float | None
    autocorrelation_10s: float | None
    gaps: int
    longest_gap_s: float


@dataclass(frozen=True, slots=True)
class Delays:
    """The round-trip times of a trace, over its samples, and the mean share of packets lost."""

    duration_s: float
    median_s: float | None
    p95_s: float | None
    loss_ratio: float | None


class DelayCounting:
    """Computes the delays' statistics from the samples one by one."""

    def __init__(self) -> None:
        self._rtts_s = array("d")
        self._duration_ns = 0
        self._lost_ns = 0.0
        self._known_ns = 0

    def add(self, sample: TraceSample) -> None:
        self._duration_ns += sample.length_ns
        if sample.rtt_s is not None:
            self._rtts_s.append(sample.rtt_s)
        if sample.loss_ratio is not None:
            self._lost_ns += sample.loss_ratio * sample.length_ns
            self._known_ns += sample.length_ns

    def result(self) -> Delays | None:
        """Returns the statistics of all samples so far; None if no sample has a delay or loss."""
        ordered = sorted(self._rtts_s)
        if not ordered and not self._known_ns:
            return None

        def quantile(share: float) -> float | None:
            return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None

        return Delays(
            duration_s=self._duration_ns / NS_PER_S,
            median_s=quantile(0.5),
            p95_s=quantile(0.95),
            loss_ratio=self._lost_ns / self._known_ns if self._known_ns else None,
        )


class Counting:
    """Computes a direction's statistics from its samples one by one, with little memory."""

    def __init__(self, bin_s: float = BIN_S) -> None:
        self._bin_ns = round(bin_s * NS_PER_S)
        self._bins_bps = array("d")
        self._duration_ns = 0
        self._bits_ns = 0
        self._bin_bits_ns = 0
        self._dark_ns = 0
        self._gaps = 0
        self._longest_ns = 0

    def add(self, length_ns: int, rate_bps: int) -> None:
        self._bits_ns += rate_bps * length_ns
        self._fill_bins(length_ns, rate_bps)
        if rate_bps < DARK_BPS:
            before_ns, self._dark_ns = self._dark_ns, self._dark_ns + length_ns
            gap_ns = round(GAP_S * NS_PER_S)
            self._gaps += before_ns <= gap_ns < self._dark_ns
            self._longest_ns = max(self._longest_ns, self._dark_ns)
        else:
            self._dark_ns = 0

    def _fill_bins(self, length_ns: int, rate_bps: int) -> None:
        while length_ns:
            part_ns = min(length_ns, self._bin_ns - self._duration_ns % self._bin_ns)
            self._bin_bits_ns += rate_bps * part_ns
            self._duration_ns += part_ns
            length_ns -= part_ns
            if self._duration_ns % self._bin_ns == 0:
                self._bins_bps.append(self._bin_bits_ns / self._bin_ns)
                self._bin_bits_ns = 0

    def result(self) -> Statistics:
        """Returns the statistics of all samples so far. Raises ValueError if there are none."""
        if not self._duration_ns:
            raise ValueError("a trace without samples has no statistics")
        return Statistics(
            duration_s=self._duration_ns / NS_PER_S,
            mean_bps=self._bits_ns / self._duration_ns,
            cv=self._cv(),
            autocorrelation_1s=self._autocorrelation(1.0),
            autocorrelation_10s=self._autocorrelation(10.0),
            gaps=self._gaps,
            longest_gap_s=self._longest_ns / NS_PER_S,
        )

    def _cv(self) -> float | None:
        mean, squares = _moments(self._bins_bps)
        if len(self._bins_bps) < 2 or mean == 0:
            return None
        return math.sqrt(squares / len(self._bins_bps)) / mean

    def _autocorrelation(self, lag_s: float) -> float | None:
        """Returns Σ(x_i − m)(x_{i+k} − m) / Σ(x_i − m)², the usual estimate (Box and Jenkins)."""
        lag, rest = divmod(round(lag_s * NS_PER_S), self._bin_ns)
        bins = self._bins_bps
        mean, squares = _moments(bins)
        if rest or lag == 0 or len(bins) < 2 * lag + 1 or squares == 0:
            return None
        later = (bins[i] for i in range(lag, len(bins)))
        products = ((x - mean) * (y - mean) for x, y in zip(bins, later, strict=False))
        return math.fsum(products) / squares


def _moments(values: array[float]) -> tuple[float, float]:
    """Returns the mean and Σ(x − mean)², which is exactly 0 if all values are equal."""
    if not values or min(values) == max(values):
        return (values[0] if values else 0.0), 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values)
