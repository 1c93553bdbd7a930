"""Merges recordings of one link: its downlink and its uplink; and samples into bins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from linklab.traces.trace import MAX_LENGTH_NS, MIN_SAMPLE_NS, TraceSample

Series = Callable[[], Iterator[tuple[int, int]]]
"""A function that starts a series of lengths in ns and rates from its beginning."""


def with_uplink(down: Iterable[TraceSample], uplink: Series) -> Iterator[TraceSample]:
    """Yields the samples of `down`, each with the uplink's mean rate in that time.

    A shorter uplink is repeated, as in Mahimahi. The rest of a longer one is left out.
    """
    rates = _endless(uplink)
    left_ns = rate_bps = 0
    for sample in down:
        needed_ns, bits_ns = sample.length_ns, 0
        while needed_ns:
            if not left_ns:
                left_ns, rate_bps = next(rates)
            part_ns = min(needed_ns, left_ns)
            bits_ns += rate_bps * part_ns
            needed_ns -= part_ns
            left_ns -= part_ns
        yield replace(sample, up_bps=round(bits_ns / sample.length_ns))


def _endless(series: Series) -> Iterator[tuple[int, int]]:
    lap = list(islice(series(), 2))
    if len(lap) == 1:
        yield MAX_LENGTH_NS + 1, lap[0][1]
    while True:
        yield from series()


def binned(samples: Iterable[TraceSample], bin_ns: int) -> Iterator[TraceSample]:
    """Yields samples of `bin_ns` with the means over time. The last one may be shorter.

    A value is the mean of the time in which it is known.
    """
    bin_ = _Bin()
    for sample in samples:
        left_ns = sample.length_ns
        while left_ns:
            part_ns = min(left_ns, bin_ns - bin_.length_ns)
            bin_.add(part_ns, sample)
            left_ns -= part_ns
            if bin_.length_ns == bin_ns:
                yield bin_.sample()
                bin_ = _Bin()
    if bin_.length_ns >= MIN_SAMPLE_NS:
        yield bin_.sample()


class _Bin:
    """Adds up samples: for each value its integral over time, and the time in which it is known."""

    def __init__(self) -> None:
        self.length_ns = 0
        self._sums: list[float] = [0, 0, 0, 0]
        self._known_ns = [0, 0, 0, 0]

    def add(self, part_ns: int, one: TraceSample) -> None:
        self.length_ns += part_ns
        for index, value in enumerate((one.down_bps, one.up_bps, one.rtt_s, one.loss_ratio)):
            if value is not None:
                self._sums[index] += value * part_ns
                self._known_ns[index] += part_ns

    def sample(self) -> TraceSample:
        down, up, rtt_s, loss = (
            total / known_ns if known_ns else None
            for total, known_ns in zip(self._sums, self._known_ns, strict=True)
        )
        return TraceSample(
            self.length_ns,
            None if down is None else round(down),
            None if up is None else round(up),
            rtt_s,
            None if loss is None else min(loss, 1.0),
        )
