"""Plays a capacity trace on a link, scaled and from any start. Pure."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Final

from linklab.core.limits import MAX_RATE_BPS, MIN_RATE_BPS
from linklab.core.link_state import LinkState
from linklab.models.keys import TIME, or_random
from linklab.models.layer import Layer, Load
from linklab.models.loss import check_bursts
from linklab.models.model import Around, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import Quantity, choice
from linklab.schema.rows import Inner, Row, Table
from linklab.traces.trace import NS_PER_S, TraceSample

ENDS: Final = ("loop", "hold", "stop")


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """How a trace is played.

    Attributes:
        down_mean_bps, up_mean_bps: the trace is scaled to these means (1000 to 10^10 bit/s).
        start_s: the time of the trace at which the run begins, 0 to its length; None draws it from
            the seed.
        end: one of `ENDS`. After its last sample the trace repeats, keeps that sample, or carries
            nothing.
    """

    down_mean_bps: int | None = None
    up_mean_bps: int | None = None
    start_s: float | None = 0.0
    end: str = "loop"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that a link plays: its file, its samples, and its settings."""

    file: Path
    samples: tuple[TraceSample, ...]
    settings: TraceSettings

    @property
    def rate(self) -> str:
        """ "scaled" if its means are the link's rates, "recorded" if they are unchanged."""
        return "recorded" if self.settings.down_mean_bps is None else "scaled"


@dataclass(frozen=True, slots=True)
class _Change:
    """A sample's values for the link; None leaves the link's value."""

    down_bps: int | None
    up_bps: int | None
    rtt_s: float | None
    loss_ratio: float | None


def from_moment(trace: Trace, t_s: float) -> Trace:
    """Returns the trace as it plays on from `t_s`. One whose start is random keeps that."""
    start_s, length_ns = trace.settings.start_s, sum(one.length_ns for one in trace.samples)
    if start_s is None:
        return trace
    start_ns = round((start_s + t_s) * NS_PER_S)
    if trace.settings.end == "loop":
        start_ns %= length_ns
    start_s = min(start_ns, length_ns - 1) / NS_PER_S
    return replace(trace, settings=replace(trace.settings, start_s=start_s))


class TracePlayback(Layer):
    """Plays a recorded or generated trace: capacity, and delay or loss if it has them. A trace of
    delays has no capacity.

    Other values stay those of the layers below. Below 1 kbit/s a direction's queue is stopped:
    nothing leaves it, and nothing in it is lost. Times are in whole nanoseconds, so that a repeated
    trace does not drift.

    Raises ValueError for a start that is not in the trace, and for means that it cannot have.
    """

    def __init__(
        self, samples: Iterable[TraceSample], settings: TraceSettings, randomness: random.Random
    ) -> None:
        trace = tuple(samples)
        scaled = _scaled(trace, settings)
        self._end = settings.end
        self._changes, self._ends_ns = _merged(scaled, [sample.length_ns for sample in trace])
        self._length_ns = self._ends_ns[-1]
        self._start_ns = _start_ns(settings, self._length_ns, randomness)
        self._next_s = 0.0

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        laps, position_ns = divmod(self._start_ns + round(t_s * NS_PER_S), self._length_ns)
        if laps and self._end != "loop":
            self._next_s = math.inf
            if self._end == "stop":
                return _apply(_Change(0, 0, None, None), state)
            return _apply(self._changes[-1], state)
        index = bisect_right(self._ends_ns, position_ns)
        self._next_s = self._end_s(laps, index)
        return _apply(self._changes[index], state)

    def next_s(self) -> float:
        """Returns when the next sample begins; inf if nothing changes any more."""
        return self._next_s

    def _end_s(self, laps: int, index: int) -> float:
        last = index == len(self._changes) - 1
        if last and (self._end == "hold" or (self._end == "loop" and not index)):
            return math.inf
        return (laps * self._length_ns + self._ends_ns[index] - self._start_ns) / NS_PER_S


def _start_ns(settings: TraceSettings, length_ns: int, randomness: random.Random) -> int:
    if settings.start_s is None:
        return int(randomness.random() * length_ns)
    start_ns = round(settings.start_s * NS_PER_S)
    if not 0 <= start_ns < length_ns:
        raise ValueError(
            f"a start of {settings.start_s} s is not in the trace; "
            f"allowed: 0 s up to less than {length_ns / NS_PER_S} s"
        )
    return start_ns


def _scaled(trace: tuple[TraceSample, ...], settings: TraceSettings) -> list[_Change]:
    down = _factor(trace, lambda sample: sample.down_bps, settings.down_mean_bps)
    up = _factor(trace, lambda sample: sample.up_bps, settings.up_mean_bps)
    changes = []
    for sample in trace:
        down_bps = None if sample.down_bps is None else round(sample.down_bps * down)
        up_bps = None if sample.up_bps is None else round(sample.up_bps * up)
        if max(down_bps or 0, up_bps or 0) > MAX_RATE_BPS:
            raise ValueError(
                f"scaled, the trace goes up to {max(down_bps or 0, up_bps or 0)} bit/s; "
                f"allowed: up to {MAX_RATE_BPS} bit/s"
            )
        changes.append(_Change(down_bps, up_bps, sample.rtt_s, sample.loss_ratio))
    return changes


def _factor(
    trace: tuple[TraceSample, ...],
    rate_of: Callable[[TraceSample], int | None],
    mean_bps: int | None,
) -> float:
    """Returns the factor that gives a direction's rates a mean; 1 if the mean is None."""
    if mean_bps is None:
        return 1.0
    known = [(rate, sample.length_ns) for sample in trace if (rate := rate_of(sample)) is not None]
    bits_ns = sum(rate * length_ns for rate, length_ns in known)
    if known and not bits_ns:
        raise ValueError(f"a trace that carries nothing cannot be scaled to {mean_bps} bit/s")
    return mean_bps * sum(length_ns for _, length_ns in known) / bits_ns if known else 1.0


def _merged(changes: list[_Change], lengths_ns: list[int]) -> tuple[list[_Change], list[int]]:
    """Returns the changes and their end times. Equal neighbours become one."""
    kept: list[_Change] = []
    ends_ns: list[int] = []
    for change, end_ns in zip(changes, accumulate(lengths_ns), strict=True):
        if kept and kept[-1] == change:
            ends_ns[-1] = end_ns
        else:
            kept.append(change)
            ends_ns.append(end_ns)
    return kept, ends_ns


def _apply(change: _Change, state: LinkState) -> LinkState:
    down_bps = state.down_rate_bps if change.down_bps is None else change.down_bps
    up_bps = state.up_rate_bps if change.up_bps is None else change.up_bps
    delay_s = state.delay_s if change.rtt_s is None else change.rtt_s / 2
    return replace(
        state,
        down_rate_bps=max(down_bps, MIN_RATE_BPS),
        up_rate_bps=max(up_bps, MIN_RATE_BPS),
        hold_down=state.hold_down or down_bps < MIN_RATE_BPS,
        hold_up=state.hold_up or up_bps < MIN_RATE_BPS,
        delay_s=delay_s,
        jitter_s=min(state.jitter_s, delay_s),
        loss_ratio=state.loss_ratio if change.loss_ratio is None else change.loss_ratio,
    )


_PLAYED: Final = Table(
    TraceSettings,
    (
        Row(
            "start",
            "start_s",
            or_random(TIME),
            "the moment of the trace that the run begins with; random: one by the seed",
        ),
        Row(
            "end", "end", choice(*ENDS), "after the last sample: repeat, keep it, or carry nothing"
        ),
    ),
)

TABLE: Final = Table(
    Trace,
    (
        Row(
            "file",
            "file",
            Quantity(str.strip, str, "a name in profiles/traces, or a path"),
            "what is played; a path counts from the scenario's file",
            needed=True,
        ),
        Row(
            "rate",
            "rate",
            choice("scaled", "recorded"),
            "scaled: so that `down` and `up` are the trace's means; recorded: as it is",
            default="scaled",
        ),
        Inner("settings", _PLAYED),
    ),
    about="Plays a recorded or generated capacity, delay and loss. The link keeps its own value of what the "
    "trace does not have.",
)

_ROW: Final = Row("trace", "trace", TABLE, "capacity, delay, loss over time")


def _read(link: Mapping, around: Around) -> Trace | None:
    if not link.has(_ROW.key):
        return None
    mapping = link.sub(_ROW.key, TABLE.keys)
    given = TABLE.values(mapping, without=("settings",))
    scaled = given.get("rate", "scaled") == "scaled"
    settings = _PLAYED.of(
        mapping,
        down_mean_bps=around.down_rate_bps if scaled else None,
        up_mean_bps=around.up_rate_bps if scaled else None,
    )
    try:
        file, samples = around.find_trace(given["file"])
        TracePlayback(samples, settings, random.Random(0))
    except ValueError as error:
        mapping.fail("file", str(error))
    losses = [one.loss_ratio for one in samples if one.loss_ratio is not None]
    some = max((one for one in losses if one < 1), default=0.0)  # A loss of 100 % has no bursts.
    check_bursts(mapping, "file", some, around.loss_burst_packets)
    return Trace(file, samples, settings)


MODEL: Final = Model(
    Trace,
    (_ROW,),
    layer=lambda trace, made: TracePlayback(trace.samples, trace.settings, made.random("trace")),
    place=Stage.CAPACITY,
    summary=lambda trace: [(_ROW.key, f"trace {trace.file.stem}")],
    reader=_read,
)
