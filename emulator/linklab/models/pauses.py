"""Interrupts a link at random times: handovers, stalls, blockages, obstructions, tunnels. Pure.

Drives report interruptions by their number a minute, and the median and 90th percentile of their
length. A lognormal length has these two. It also gives the stated third figure: stalls of 5G with
0.1 s and 0.6 s have a 99th percentile of 2.6 s, and 2.4 s was measured (CoNEXT 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from msgspec import UNSET

from linklab.core import units
from linklab.core.bit_exact_math import log
from linklab.core.limits import MIN_LENGTH_S
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.keys import LENGTH, NODE_NAME, SHARE
from linklab.models.layer import Load
from linklab.models.model import Around, Happening, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import BOOLEAN, number
from linklab.schema.rows import Listed, Row, Table

NORMAL_P90: Final = 1.2815515655446004
"""The 90th percentile of the standard normal distribution."""

LONGEST: Final = 4.0
"""By default a pause lasts at most this multiple of `p90`, an assumption. For the stalls of CoNEXT 2025
that is their 99th percentile."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A kind of pause.

    Attributes:
        name: up to 8 of a-z and 0-9, for `events.jsonl`.
        per_minute: mean number of pauses that begin in a minute (0.001 to 600).
        median_s, p90_s: percentiles of their length (1 ms to 86400 s).
        longest_s: no pause is longer. None: `LONGEST` times `p90_s`.
        left_ratio: share of both rates that is left (0 to 1). With 0, packets wait.
        is_lossy: all packets are lost in both directions, and the client cannot see it.
    """

    name: str
    per_minute: float
    median_s: float
    p90_s: float
    longest_s: float | None = None
    left_ratio: float = 0.0
    is_lossy: bool = False


@dataclass(frozen=True, slots=True)
class PausesSettings:
    """All kinds of pauses of a link."""

    pauses: tuple[Pause, ...]


class _Occurrences:
    """The times of one kind of pause. Beginnings are a Poisson process. Pauses that overlap join."""

    def __init__(self, pause: Pause, random: Random) -> None:
        self._random = random
        self._gap_s = 60 / pause.per_minute
        self._median_s = pause.median_s
        self._sigma = log(pause.p90_s / pause.median_s) / NORMAL_P90
        self._longest_s = LONGEST * pause.p90_s if pause.longest_s is None else pause.longest_s
        self._begins_s = draws.exponential(random, self._gap_s)
        self._ends_s = 0.0

    def active(self, t_s: float) -> bool:
        """Tells whether there is a pause. `t_s` must never decrease."""
        while self._begins_s <= t_s:
            drawn_s = draws.lognormal(self._random, self._median_s, self._sigma)
            length_s = max(MIN_LENGTH_S, min(drawn_s, self._longest_s))
            self._ends_s = max(self._ends_s, self._begins_s + length_s)
            self._begins_s += draws.exponential(self._random, self._gap_s)
        return t_s < self._ends_s

    def next_s(self, t_s: float) -> float:
        """Returns when the next pause begins, or this one ends."""
        return min(self._begins_s, self._ends_s if t_s < self._ends_s else math.inf)


class Pauses:
    """Stops, slows down or loses the packets of a link during its pauses."""

    wants_load = False
    wants_connections = False

    def __init__(self, pauses: Sequence[Pause], randoms: Sequence[Random]) -> None:
        self._pauses = [
            (pause, _Occurrences(pause, random))
            for pause, random in zip(pauses, randoms, strict=True)
        ]
        self._now_s = 0.0

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        """Returns the state, changed by the pauses of this time."""
        self._now_s = t_s
        active = [pause for pause, times in self._pauses if times.active(t_s)]
        for pause in active:
            state = _paused(state, pause)
        return state

    def next_s(self) -> float:
        """Returns the exact time at which the next pause begins or ends."""
        return min(times.next_s(self._now_s) for _, times in self._pauses)


def _paused(state: LinkState, pause: Pause) -> LinkState:
    named = replace(state, pause=pause.name)
    if pause.is_lossy:
        return replace(named, blackout=True)
    if pause.left_ratio == 0:
        return replace(named, hold_down=True, hold_up=True)
    return named.scaled(pause.left_ratio, pause.left_ratio)


def _check(item: Mapping, pause: Pause) -> None:
    for key, length_s in (("p90", pause.p90_s), ("longest", pause.longest_s)):
        if length_s is not None and length_s < pause.median_s:
            item.fail(
                key,
                f"{units.format_duration(length_s)} is shorter than the median; "
                f"allowed: at least {units.format_duration(pause.median_s)}",
            )
    if pause.is_lossy and pause.left_ratio:
        item.fail("left", "a lossy pause leaves nothing; allowed: without `lossy`")


TABLE: Final = Table(
    Pause,
    (
        Row("name", "name", NODE_NAME, "what it is, such as stall", needed=True),
        Row(
            "per_minute",
            "per_minute",
            number(0.001, 600.0),
            "mean number of pauses that begin in a minute",
            needed=True,
        ),
        Row("median", "median_s", LENGTH, "median of the length", needed=True),
        Row("p90", "p90_s", LENGTH, "90th percentile of the length", needed=True),
        Row(
            "longest",
            "longest_s",
            LENGTH,
            "no pause is longer",
            unset=None,
            default=f"{LONGEST:g} times `p90`",
        ),
        Row("left", "left_ratio", SHARE, "share of the rates that is left; 0: packets wait"),
        Row("lossy", "is_lossy", BOOLEAN, "all packets are lost, and the client does not see that"),
    ),
    _check,
    about="Interruptions at random times, of a lognormal length.",
)


def _check_names(link: Mapping, found: list[tuple[Mapping, Pause]]) -> None:
    if not found:
        link.fail(_ROW.key, "the list is empty; allowed: one mapping or more")
    names = set[str]()
    for item, pause in found:
        if pause.name in names:
            item.fail("name", f"{pause.name!r} is there twice; allowed: another name")
        names.add(pause.name)


_LIST: Final = Listed(TABLE, _check_names)

_ROW: Final = Row("pauses", "pauses", _LIST, "interruptions at random times, such as handovers")


def _read(link: Mapping, around: Around) -> PausesSettings | None:
    return PausesSettings(_LIST.read(link, _ROW.key)) if link.has(_ROW.key) else None


def _transitions(before: LinkState, after: LinkState) -> list[Happening]:
    if before.pause == after.pause:
        return []
    ended = [] if before.pause is UNSET else [Happening("pause-end", before.pause)]
    begun = [] if after.pause is UNSET else [Happening("pause", after.pause)]
    return ended + begun


MODEL: Final = Model(
    PausesSettings,
    (_ROW,),
    layer=lambda settings, made: Pauses(
        settings.pauses, [made.random(f"pauses {one.name}") for one in settings.pauses]
    ),
    place=Stage.LIMIT,
    summary=lambda settings: [
        (_ROW.key, f"pauses ({', '.join(one.name for one in settings.pauses)})")
    ],
    reader=_read,
    writer=lambda settings: {} if settings is None else {_ROW.key: _LIST.write(settings.pauses)},
    transitions=_transitions,
    happenings=("pause", "pause-end"),
)
