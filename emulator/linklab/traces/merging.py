"""Merges recordings of one link: its downlink, its uplink, its delays. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from linklab.traces.trace import MAX_LENGTH_NS, TraceSample

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
    lap = list(_first(series(), 2))
    if len(lap) == 1:
        yield MAX_LENGTH_NS + 1, lap[0][1]
    while True:
        yield from series()


def _first(values: Iterator[tuple[int, int]], count: int) -> Iterator[tuple[int, int]]:
    for _, value in zip(range(count), values, strict=False):
        yield value


def with_rtts(
    samples: Iterable[TraceSample], rtts: Callable[[], Iterator[tuple[int, float]]]
) -> Iterator[TraceSample]:
    """Yields the samples, each with the RTT at its start. Before the first RTT, the first holds.

    `rtts` starts a series of times in ns and RTTs from its beginning. It is repeated from its last
    time on, as in CellReplay; there the first RTT holds again.
    """
    changes = _repeated(rtts)
    rtt_s = next(changes)[1]
    due_ns, coming_s = next(changes)
    t_ns = 0
    for sample in samples:
        while due_ns <= t_ns:
            rtt_s = coming_s
            due_ns, coming_s = next(changes)
        yield replace(sample, rtt_s=rtt_s)
        t_ns += sample.length_ns


def _repeated(series: Callable[[], Iterator[tuple[int, float]]]) -> Iterator[tuple[int, float]]:
    begin_ns = 0
    while True:
        last_ns = 0
        for last_ns, rtt_s in series():
            yield begin_ns + last_ns, rtt_s
        begin_ns += last_ns
        if last_ns == 0:
            yield MAX_LENGTH_NS + 1, rtt_s
            return
