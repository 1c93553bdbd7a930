"""Slows a link down and releases it at random times (eMPTCP 4.3). Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from linklab.core import units
from linklab.core.limits import MAX_RATE_BPS, MIN_RATE_BPS
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.keys import LENGTH
from linklab.models.layer import Layer, Load
from linklab.models.model import Model, Stage
from linklab.schema.quantities import rate
from linklab.schema.rows import Row, Table


@dataclass(frozen=True, slots=True)
class OnOffSettings:
    """The settings of an on-off link.

    Attributes:
        off_rate_bps: limit of both directions while off (1000 to 10^10 bit/s).
        on_s, off_s: mean durations, exponentially distributed (1 ms to 86400 s). eMPTCP 4.3 has
            40 s, at most 1 Mbit/s while off and at least 10 Mbit/s while on.
    """

    off_rate_bps: int
    on_s: float = 40.0
    off_s: float = 40.0


class OnOff(Layer):
    """A two-state Markov process that limits a link's rates.

    At the start it is on with its long-term probability.
    """

    def __init__(self, settings: OnOffSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._on = random.random() < settings.on_s / (settings.on_s + settings.off_s)
        self._changes_s = self._lasts_s()

    def _lasts_s(self) -> float:
        mean_s = self._settings.on_s if self._on else self._settings.off_s
        return draws.exponential(self._random, mean_s)

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        while self._changes_s <= t_s:
            self._on = not self._on
            self._changes_s += self._lasts_s()
        if self._on:
            return state
        limit_bps = self._settings.off_rate_bps
        return replace(
            state,
            down_rate_bps=min(state.down_rate_bps, limit_bps),
            up_rate_bps=min(state.up_rate_bps, limit_bps),
        )

    def next_s(self) -> float:
        return self._changes_s


TABLE: Final = Table(
    OnOffSettings,
    (
        Row(
            "rate",
            "off_rate_bps",
            rate(MIN_RATE_BPS, MAX_RATE_BPS),
            "highest rate while off, in each direction",
            needed=True,
        ),
        Row("on", "on_s", LENGTH, "mean time at full rate"),
        Row("off", "off_s", LENGTH, "mean time at the lower rate"),
    ),
    about="The link is slow at random times. Both times are exponentially distributed.",
)

MODEL: Final = Model(
    OnOffSettings,
    (Row("on_off", "on_off", TABLE, "slowed down at random times"),),
    layer=lambda settings, made: OnOff(settings, made.random("on off")),
    place=Stage.LIMIT,
    summary=lambda settings: [
        ("on_off", f"at times {units.format_rate(settings.off_rate_bps)} at most")
    ],
)
