"""Computes a radio's power over time from its link's activity: active, promotion, tail, idle. Pure."""

from __future__ import annotations

import enum
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linklab.core.link_state import CONNECTED
from linklab.energy.activity import Activity, Counted, RadioState
from linklab.energy.model import LinkEnergy, Promotion
from linklab.models.rrc import IDLE, PROMOTION

_MBIT_PER_BYTE = 8e-6


class Phase(enum.Enum):
    ACTIVE = "active"
    PROMOTION = "promotion"
    TAIL = "tail"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class _Span:
    from_s: float
    to_s: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class Draw:
    """A radio's phase and power from `from_s` until the next entry."""

    from_s: float
    phase: Phase
    power_mw: float


class Radio:
    """A link's radio during a download from `start_s` to `end_s`, and after it until it is idle.

    `head_mj` is the energy of promotions before the records begin. If no radio states are
    recorded, the radio counts as idle before the download, and as awake in time.
    """

    def __init__(
        self, activity: Activity, energy: LinkEnergy, start_s: float, end_s: float
    ) -> None:
        self._energy = energy
        self._counted = _within(activity.counted, start_s, end_s)
        self._times = [one.t_s for one in self._counted]
        self.head_mj = 0.0
        if activity.radio:
            spans = _by_states(activity.radio, start_s, end_s)
            draws = list(self._draws(spans))
        else:
            draws = list(self._draws(self._waking(_by_bytes(self._counted), start_s)))
        self._draw = [Draw(start_s, Phase.IDLE, energy.idle_mw), *draws]
        self._starts = [draw.from_s for draw in self._draw]

    @property
    def marks(self) -> list[float]:
        """The times at which the power may change. From the last one on the radio stays idle."""
        return sorted([*self._times, *self._starts])

    @property
    def carried(self) -> Counted:
        """The bytes that the link carried during the download."""
        first, last = self._counted[0], self._counted[-1]
        return Counted(last.t_s, last.down_bytes - first.down_bytes, last.up_bytes - first.up_bytes)

    def at(self, t_s: float) -> Draw:
        """Returns phase and power at a time, without the energy of the bytes."""
        return self._draw[bisect_right(self._starts, t_s) - 1]

    def transfer_mw(self, t_s: float) -> float:
        """Returns the additional power for the bytes that the link carries at a time."""
        index = bisect_right(self._times, t_s)
        if not 0 < index < len(self._counted):
            return 0.0
        before, after = self._counted[index - 1], self._counted[index]
        down = (after.down_bytes - before.down_bytes) * self._energy.down_mj_per_mbit
        up = (after.up_bytes - before.up_bytes) * self._energy.up_mj_per_mbit
        return (down + up) * _MBIT_PER_BYTE / (after.t_s - before.t_s)

    def _draws(self, spans: Sequence[_Span]) -> Iterator[Draw]:
        """Yields the powers of the spans. A tail follows each active span, and a promotion if it is
        the last span."""
        energy = self._energy
        for span, following in itertools.zip_longest(spans, spans[1:]):
            if span.phase is Phase.PROMOTION:
                wakes = energy.promotion or Promotion(energy.idle_mw, 0.0)
                yield Draw(span.from_s, Phase.PROMOTION, wakes.power_mw)
                if following is None:
                    yield from self._tail(max(span.to_s, span.from_s + wakes.time_s), math.inf)
            elif span.phase is Phase.IDLE:
                yield Draw(span.from_s, Phase.IDLE, energy.idle_mw)
            else:
                yield Draw(span.from_s, Phase.ACTIVE, energy.active_mw)
                yield from self._tail(span.to_s, following.from_s if following else math.inf)

    def _tail(self, from_s: float, until_s: float) -> Iterator[Draw]:
        for state in self._energy.tail:
            if from_s < until_s:
                yield Draw(from_s, Phase.TAIL, state.power_mw)
            from_s += state.time_s
        if from_s < until_s:
            yield Draw(from_s, Phase.IDLE, self._energy.idle_mw)

    def _waking(self, spans: Sequence[_Span], start_s: float) -> list[_Span]:
        """Inserts a promotion before each span that finds the radio idle.

        The promotion starts as early as the time before the span allows.
        """
        promotion = self._energy.promotion
        if promotion is None:
            return list(spans)
        found: list[_Span] = []
        idle_s = -math.inf
        for span in spans:
            if idle_s < span.from_s:
                from_s = max(span.from_s - promotion.time_s, idle_s, start_s)
                missing_s = promotion.time_s - (span.from_s - from_s)
                self.head_mj += missing_s * promotion.power_mw
                if from_s < span.from_s:
                    found.append(_Span(from_s, span.from_s, Phase.PROMOTION))
            found.append(span)
            idle_s = span.to_s + self._energy.tail_s
        return found


def _within(counted: Sequence[Counted], start_s: float, end_s: float) -> list[Counted]:
    """Returns the counters between start and end.

    Bytes of a sample that crosses the start or the end count as inside.
    """
    before = [one for one in counted if one.t_s <= start_s]
    inside = [one for one in counted if start_s < one.t_s < end_s]
    after = [one for one in counted if one.t_s >= end_s]
    first = before[-1] if before else Counted(start_s, 0, 0)
    last = after[0] if after else (inside[-1] if inside else first)
    return [
        Counted(start_s, first.down_bytes, first.up_bytes),
        *inside,
        Counted(end_s, last.down_bytes, last.up_bytes),
    ]


def _by_bytes(counted: Sequence[Counted]) -> list[_Span]:
    """Returns the spans in which a link carried something. Adjacent samples form one span."""
    found: list[_Span] = []
    for before, after in itertools.pairwise(counted):
        if (after.down_bytes, after.up_bytes) == (before.down_bytes, before.up_bytes):
            continue
        from_s = before.t_s
        if found and found[-1].to_s == from_s:
            from_s = found.pop().from_s
        found.append(_Span(from_s, after.t_s, Phase.ACTIVE))
    return found


_PHASES = {CONNECTED: Phase.ACTIVE, PROMOTION: Phase.PROMOTION, IDLE: Phase.IDLE}


def _by_states(radio: Sequence[RadioState], start_s: float, end_s: float) -> list[_Span]:
    """Returns the spans in which a radio was connected, waking or idle.

    Discontinuous reception has no span. It is part of the tail of the span before it.
    """
    ends = [*(one.t_s for one in radio[1:]), end_s]
    return [
        _Span(max(one.t_s, start_s), min(to_s, end_s), _PHASES[one.state])
        for one, to_s in zip(radio, ends, strict=True)
        if one.state in _PHASES and one.t_s < end_s and to_s > start_s
    ]
