"""Interrupts a link at random times: handovers, stalls, blockages, obstructions, tunnels. Pure.

Drives report interruptions by their number a minute, and the median and 90th percentile of their
length. A lognormal length has these two. It also gives the stated third figure: stalls of 5G with
0.1 s and 0.6 s have a 99th percentile of 2.6 s, and 2.4 s was measured (CoNEXT 2025).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from msgspec import UNSET

from linklab.core import units
from linklab.core.bit_exact_math import exp, log
from linklab.core.limits import MIN_LENGTH_S
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.keys import LENGTH, NODE_NAME, SHARE
from linklab.models.layer import Layer, Load
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

    def length_s(self, deviation: float) -> float:
        """Returns the length that lies this many standard deviations from the median."""
        sigma = log(self.p90_s / self.median_s) / NORMAL_P90
        longest_s = LONGEST * self.p90_s if self.longest_s is None else self.longest_s
        return max(MIN_LENGTH_S, min(self.median_s * exp(sigma * deviation), longest_s))


@dataclass(frozen=True, slots=True)
class PausesSettings:
    pauses: tuple[Pause, ...]


def _taken(pauses: Iterable[Pause]) -> float:
    """Returns the share of the time that pauses take."""
    return sum(pause.per_minute / 60 * _mean_s(pause) for pause in pauses)


@functools.cache
def _mean_s(pause: Pause) -> float:
    """Returns the mean length, by the trapezoidal rule over 8 deviations to both sides."""
    weights = {n / 16: exp(-n * n / 512) for n in range(-128, 129)}
    weighted_s = (weight * pause.length_s(at) for at, weight in weights.items())
    return sum(weighted_s) / sum(weights.values())


class Pauses(Layer):
    """Stops, slows down or loses the packets of a link during its pauses.

    The next pause of a kind begins after an exponential time without any pause. So a pause neither
    joins nor covers another one, and number and lengths are those of the settings.
    """

    def __init__(self, pauses: Sequence[Pause], randoms: Sequence[Random]) -> None:
        self._kinds = list(zip(pauses, randoms, strict=True))
        self._free = 1 - _taken(pauses)
        self._begins_s = [self._gap_s(pause, random) for pause, random in self._kinds]
        self._pause = pauses[0]
        self._ends_s = self._now_s = 0.0

    def _gap_s(self, pause: Pause, random: Random) -> float:
        return draws.exponential(random, self._free * 60 / pause.per_minute)

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        """Returns the state, changed by the pause of this time. `t_s` must never decrease."""
        self._now_s = t_s
        while (begins_s := min(self._begins_s)) <= t_s:
            index = self._begins_s.index(begins_s)
            self._pause, random = self._kinds[index]
            length_s = self._pause.length_s(draws.normal(random))
            self._ends_s = begins_s + length_s
            self._begins_s[index] += self._gap_s(self._pause, random)
            self._begins_s = [one + length_s for one in self._begins_s]
        return _paused(state, self._pause) if t_s < self._ends_s else state

    def next_s(self) -> float:
        """Returns the exact time at which the next pause begins, or this one ends."""
        return self._ends_s if self._now_s < self._ends_s else min(self._begins_s)


def _paused(state: LinkState, pause: Pause) -> LinkState:
    named = replace(state, pause=pause.name)
    if pause.is_lossy:
        return replace(named, blackout=True)
    if pause.left_ratio == 0:
        return replace(named, hold_down=True, hold_up=True)
    return named.scaled(pause.left_ratio, pause.left_ratio)


def _check(item: Mapping, pause: Pause) -> None:
    for key, length_s, than, least_s in (
        ("p90", pause.p90_s, "median", pause.median_s),
        ("longest", pause.longest_s, "p90", pause.p90_s),
    ):
        if length_s is not None and length_s < least_s:
            item.fail(
                key,
                f"{units.format_duration(length_s)} is shorter than the {than}; "
                f"allowed: at least {units.format_duration(least_s)}",
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
    about="Interruptions at random times, of a lognormal length, one at a time.",
)


def _check_all(link: Mapping, found: list[tuple[Mapping, Pause]]) -> None:
    if not found:
        link.fail(_ROW.key, "the list is empty; allowed: one mapping or more")
    names = set[str]()
    for item, pause in found:
        if pause.name in names:
            item.fail("name", f"{pause.name!r} is there twice; allowed: another name")
        names.add(pause.name)
    if (taken := _taken(pause for _, pause in found)) >= 1:
        link.fail(
            _ROW.key,
            f"they take {100 * taken:.4g} % of the time; allowed: less than 100 %",
        )


_LIST: Final = Listed(TABLE, _check_all)

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
