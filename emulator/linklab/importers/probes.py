"""Makes samples of probes: round trips that ping measured one by one. Pure.

A sample has the median round-trip time of its probes. If it has at least 10 probes, it also has the
share of those lost. A time without any probe keeps the round-trip time from before.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from linklab.traces.trace import (
    MAX_LENGTH_NS,
    MAX_LENGTH_S,
    MIN_SAMPLE_NS,
    NS_PER_S,
    TraceFile,
    TraceSample,
)

SAMPLE_S: Final = 1.0
"""The usual length of a sample."""

_ENOUGH: Final = 10
"""Fewer probes tell no share."""

_SILENCE_NS: Final = 10 * NS_PER_S

_SET_BACK_NS: Final = NS_PER_S
"""How much earlier than the latest probe a probe may be."""

_LOOKED_AT: Final = 32


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe: when it was sent, and its round-trip time. None means that it was lost."""

    t_ns: int
    rtt_s: float | None


def trace(
    probes: Iterator[Probe], bin_s: float | None, fail: Callable[[str], NoReturn], notes: list[str]
) -> TraceFile:
    """Returns a trace of delays. `fail` raises TraceError for the line that is being read."""
    head = list(itertools.islice(probes, _LOOKED_AT))
    if not head:
        fail("there is no probe; needed: at least one")
    gaps = [later.t_ns - one.t_ns for one, later in itertools.pairwise(head)]
    every_ns = max(round(statistics.median(gaps)), MIN_SAMPLE_NS) if gaps else NS_PER_S
    bin_ns = max(round((bin_s or SAMPLE_S) * NS_PER_S), every_ns if bin_s is None else 0)
    has_loss = bin_ns >= _ENOUGH * every_ns
    reading = _Reading(bin_ns, every_ns, fail, notes, has_loss=has_loss)
    return TraceFile(
        reading.samples(head[0].t_ns, itertools.chain(head, probes)),
        frozenset({"rtt", "loss"} if has_loss else {"rtt"}),
        [f"medians over {bin_ns / NS_PER_S:g} s"],
        notes,
        has_rates=False,
    )


class _Reading:
    """One pass over the probes."""

    def __init__(
        self,
        bin_ns: int,
        every_ns: int,
        fail: Callable[[str], NoReturn],
        notes: list[str],
        *,
        has_loss: bool,
    ) -> None:
        self._bin_ns = bin_ns
        self._every_ns = every_ns
        self._has_loss = has_loss
        self._fail = fail
        self._notes = notes
        self._sent = self._lost = self._bursts = self._silences = 0
        self._rtt_s: float | None = None

    def samples(self, first_ns: int, probes: Iterator[Probe]) -> Iterator[TraceSample]:
        """Yields a sample for each bin, the first one from `first_ns` on. Several bins without a probe
        are one sample. Raises TraceError."""
        begin_ns = last_ns = first_ns
        rtts: list[float] = []
        count = 0
        was_lost = False
        for one in probes:
            if one.t_ns < last_ns - _SET_BACK_NS:
                self._fail(
                    f"a probe is {(last_ns - one.t_ns) / NS_PER_S:.3g} s earlier than the one "
                    "before; allowed: probes in order of time"
                )
            if one.t_ns - first_ns > MAX_LENGTH_NS:
                self._fail(f"is too long; allowed: up to {MAX_LENGTH_S} s")
            self._silences += one.t_ns - last_ns > _SILENCE_NS
            last_ns = max(last_ns, one.t_ns)
            passed = (last_ns - begin_ns) // self._bin_ns
            begin_ns += passed * self._bin_ns
            if passed:
                yield self._sample(self._bin_ns, rtts, count)
                rtts, count = [], 0
            if passed > 1:
                yield self._sample((passed - 1) * self._bin_ns, [], 0)
            count += 1
            self._sent += 1
            if one.rtt_s is None:
                self._lost += 1
                self._bursts += not was_lost
            else:
                rtts.append(one.rtt_s)
            was_lost = one.rtt_s is None
        rest_ns = last_ns - begin_ns + self._every_ns
        yield self._sample(min(self._bin_ns, rest_ns), rtts, count)
        self._tell()

    def _sample(self, length_ns: int, rtts: list[float], count: int) -> TraceSample:
        if rtts:
            self._rtt_s = statistics.median(rtts)
        loss = (count - len(rtts)) / count if self._has_loss and count >= _ENOUGH else None
        return TraceSample(length_ns, rtt_s=self._rtt_s, loss_ratio=loss)

    def _tell(self) -> None:
        if self._lost == self._sent:
            self._fail("all probes were lost; needed: at least one round trip")
        if self._lost:
            share = f"{100 * self._lost / self._sent:.3g} %"
            self._notes.append(
                f"{self._lost} of {self._sent} probes were lost, either way ({share}, "
                f"{self._lost / self._bursts:.3g} in a row on average)"
            )
            self._notes.append(
                "this loss is the downlink's in the trace"
                if self._has_loss
                else f"a sample has too few probes to tell its loss: with --bin "
                f"{_ENOUGH * self._every_ns / NS_PER_S:g} it does"
            )
        if self._silences:
            self._notes.append(
                f"{self._silences} times no probe was sent for more than 10 s: the round-trip time "
                "before holds"
            )
