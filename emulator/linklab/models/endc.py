"""Models dual connectivity of 5G and LTE (EN-DC): where NR is lost, LTE carries on. Pure.

A non-standalone phone holds an LTE carrier as its anchor, and adds NR (3GPP TS 37.340). The link's own
rates and delay are those with NR. WWW 2020 walked with mmWave for 603 s: 11 falls to LTE, spells with
a median of 15 s on NR and of 4 s on LTE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from msgspec import UNSET

from linklab.core import units
from linklab.core.link_kinds import FIVE_G
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.keys import LENGTH, RATE, ROUND_TRIP
from linklab.models.layer import Layer, Load
from linklab.models.model import Happening, Model, Stage
from linklab.schema.quantities import number
from linklab.schema.rows import Row, Table

NR: Final = "nr"
LTE_ONLY: Final = "lte"


@dataclass(frozen=True, slots=True)
class EndcSettings:
    """What LTE carries alone, and how long the spells last.

    Attributes:
        down_rate_bps, up_rate_bps, rtt_s: of LTE alone.
        nr_s, lte_s: medians of the spells, which are lognormal (1 ms to 86400 s).
        sigma: standard deviation of the logarithm of both (0 to 3). With 1.46 a spell of each takes
            55 s on average, as 11 falls in 603 s say. That both have the same is an assumption.
    """

    down_rate_bps: int
    up_rate_bps: int
    rtt_s: float
    nr_s: float = 15.0
    lte_s: float = 4.0
    sigma: float = 1.46


class Endc(Layer):
    """Spells with NR and with LTE alone in turn. A run begins in a spell with NR."""

    def __init__(self, settings: EndcSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._has_nr = True
        self._changes_s = self._lasts_s()

    def _lasts_s(self) -> float:
        median_s = self._settings.nr_s if self._has_nr else self._settings.lte_s
        return max(1e-3, draws.lognormal(self._random, median_s, self._settings.sigma))

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        while self._changes_s <= t_s:
            self._has_nr = not self._has_nr
            self._changes_s += self._lasts_s()
        if self._has_nr:
            return replace(state, technology=NR)
        settings = self._settings
        delay_s = settings.rtt_s / 2
        return replace(
            state,
            technology=LTE_ONLY,
            down_rate_bps=settings.down_rate_bps,
            up_rate_bps=settings.up_rate_bps,
            delay_s=delay_s,
            jitter_s=min(state.jitter_s, delay_s),
        )

    def next_s(self) -> float:
        return self._changes_s


TABLE: Final = Table(
    EndcSettings,
    (
        Row("down", "down_rate_bps", RATE, "downlink rate of LTE alone", needed=True),
        Row("up", "up_rate_bps", RATE, "uplink rate of LTE alone", needed=True),
        Row("rtt", "rtt_s", ROUND_TRIP, "round-trip time of LTE alone", needed=True),
        Row("nr", "nr_s", LENGTH, "median time with NR"),
        Row("lte", "lte_s", LENGTH, "median time with LTE alone"),
        Row(
            "sigma",
            "sigma",
            number(0.0, 3.0),
            "how much both times vary: standard deviation of the logarithm",
        ),
    ),
    about="NR is lost at random times, and LTE carries on. The link's own keys are those with NR.",
)


def _transitions(before: LinkState, after: LinkState) -> list[Happening]:
    if before.technology == after.technology or after.technology is UNSET:
        return []
    return [Happening("technology", after.technology)]


MODEL: Final = Model(
    EndcSettings,
    (Row("endc", "endc", TABLE, "LTE that carries on where NR is lost"),),
    layer=lambda settings, made: Endc(settings, made.random("endc")),
    place=Stage.RUN,
    summary=lambda settings: [("endc", f"else LTE of {units.format_rate(settings.down_rate_bps)}")],
    kinds=(FIVE_G,),
    transitions=_transitions,
    happenings=("technology",),
)
