"""Models the slots of satellites in a low orbit: a new satellite and route every 15 s. Pure.

Starlink assigns satellites anew at the seconds 12, 27, 42 and 57 of every minute. OJCOMS 2025 found
bursts of loss there, and 19 % less rate in the last second of a slot. Delay and rate differ between
slots. A stationary dish lost 0.36 % of its pings, which are 54 ms of a slot if all are lost at its
beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from linklab.core import units
from linklab.core.link_kinds import SATELLITE
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.keys import SHARE, or_random
from linklab.models.layer import Layer, Load
from linklab.models.loss import Losses, combined
from linklab.models.model import Around, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import duration, ratio
from linklab.schema.rows import Row, Table

_TRUNCATED_AT: Final = 2.0
"""Normal numbers farther from their mean are drawn again."""

_SD: Final = 0.8796256610342398
"""The standard deviation of the others: √(1 - 4 φ(2) / (2 Φ(2) - 1))."""

_MOST_RTT_SD: Final = 0.43
"""The largest standard deviation of the round trip, by its mean. Slots are at most 2.27 deviations from
the mean, so no delay is below 0."""

_MOST_BURST: Final = 0.1
"""The longest mean burst, by the slot's length. The slot's end then cuts one burst in e^10."""


@dataclass(frozen=True, slots=True)
class SlotSettings:
    """The slots. Rates and delay of the link are the means over all slots.

    Attributes:
        length_s: of a slot (1 s to 600 s).
        first_s: a second of the minute at which a slot begins (0 to 600 s).
        start_s: the second of the minute at which the run begins; None draws it from the seed.
        rtt_sd_s: standard deviation of the round trip between slots (0 to 1 s). The quartiles of a
            stationary dish, 18 and 23 ms, are those of 3.7 ms.
        rate_sd: standard deviation of the rate between slots, relative to its mean (0 to 0.4), an
            assumption. The quartiles over days, 198 and 360 of 292 Mbit/s, give 0.42 as an upper
            limit.
        burst_s: mean length of the burst of loss at the beginning, exponential (0 to 5 s).
        burst_loss_ratio: share of downlink packets lost in it, an assumption.
        slow_ratio: share of the rate that the last second lacks.
    """

    length_s: float = 15.0
    first_s: float = 12.0
    start_s: float | None = 0.0
    rtt_sd_s: float = 0.0037
    rate_sd: float = 0.2
    burst_s: float = 0.06
    burst_loss_ratio: float = 0.9
    slow_ratio: float = 0.19


SLOW_S: Final = 1.0
"""The length of the slower end of a slot."""


class Slots(Layer):
    """Changes rate, delay and loss with every slot. The loss ratio of the state below is kept."""

    def __init__(self, settings: SlotSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        start_s = settings.start_s
        if start_s is None:
            start_s = 60 * random.random()
        self._offset_s = settings.first_s % settings.length_s - start_s % settings.length_s
        if self._offset_s > 0:
            self._offset_s -= settings.length_s
        self._number = 0
        self._now_s = 0.0
        self._draw()

    def _draw(self) -> None:
        settings = self._settings
        self._rate = 1 + settings.rate_sd * self._deviation()
        self._rtt_s = settings.rtt_sd_s * self._deviation()
        self._burst_s = draws.exponential(self._random, settings.burst_s)

    def _deviation(self) -> float:
        """Draws a number with mean 0 and standard deviation 1, from -2.27 to 2.27."""
        while abs(drawn := draws.normal(self._random)) > _TRUNCATED_AT:
            pass
        return drawn / _SD

    def _begins_s(self, number: int) -> float:
        return self._offset_s + number * self._settings.length_s

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        self._now_s = t_s
        while t_s >= self._begins_s(self._number + 1):
            self._number += 1
            self._draw()
        settings = self._settings
        rate = self._rate
        if t_s >= self._begins_s(self._number + 1) - SLOW_S:
            rate *= 1 - settings.slow_ratio
        delay_s = max(0.0, state.delay_s + self._rtt_s / 2)
        losses = Losses(state.loss_ratio, state.loss_burst_packets)
        if self._number and t_s < self._begins_s(self._number) + self._burst_s:
            losses = combined(losses, Losses(settings.burst_loss_ratio, 1.0))
        return replace(
            state.scaled(rate, rate),
            delay_s=delay_s,
            jitter_s=min(state.jitter_s, delay_s),
            loss_ratio=losses.ratio,
            loss_burst_packets=losses.burst_packets,
        )

    def next_s(self) -> float:
        """Returns the exact time of the next change: end of a burst, slower end, next slot."""
        begun_s, next_s = (self._begins_s(self._number + more) for more in (0, 1))
        times = [begun_s + self._burst_s, next_s - SLOW_S]
        return min((one for one in times if one > self._now_s), default=next_s)


def _check(mapping: Mapping, settings: SlotSettings) -> None:
    most_s = _MOST_BURST * settings.length_s
    if settings.burst_s > most_s:
        mapping.fail(
            "burst",
            f"{units.format_duration(settings.burst_s)} is long for a slot; allowed: at most "
            f"{units.format_duration(most_s)}, a tenth of its length",
        )


TABLE: Final = Table(
    SlotSettings,
    (
        Row("length", "length_s", duration(2.0, 600.0), "length of a slot"),
        Row("first", "first_s", duration(0.0, 600.0), "second of the minute at which one begins"),
        Row(
            "start",
            "start_s",
            or_random(duration(0.0, 3600.0)),
            "second of the minute at which the run begins; random: one by the seed",
        ),
        Row(
            "rtt_sd",
            "rtt_sd_s",
            duration(0.0, 1.0),
            f"standard deviation of the round trip, up to {units.format_ratio(_MOST_RTT_SD)} of it",
        ),
        Row("rate_sd", "rate_sd", ratio(0.0, 0.4), "standard deviation of the rate / mean"),
        Row(
            "burst",
            "burst_s",
            duration(0.0, 5.0),
            "mean length of the loss at the beginning, up to a tenth of `length`",
        ),
        Row("burst_loss", "burst_loss_ratio", ratio(0.0, 0.99), "packets lost in it"),
        Row("slow", "slow_ratio", SHARE, "what the rate of the last second lacks"),
    ),
    _check,
    about="A satellite serves a link for a slot. Every slot has its own rate and delay.",
)


_ROW: Final = Row("slots", "slots", TABLE, "satellites that take turns")


def _read(link: Mapping, around: Around) -> SlotSettings | None:
    if not link.has(_ROW.key):
        return None
    settings = TABLE.read(link, _ROW.key)
    most_s = _MOST_RTT_SD * around.rtt_s
    if settings.rtt_sd_s > most_s:
        link.sub(_ROW.key, TABLE.keys).fail(
            "rtt_sd",
            f"{units.format_duration(settings.rtt_sd_s)} does not fit an rtt of "
            f"{units.format_duration(around.rtt_s)}; allowed: at most "
            f"{units.format_duration(most_s)}, so that no delay is below 0",
        )
    return settings


MODEL: Final = Model(
    SlotSettings,
    (_ROW,),
    layer=lambda settings, made: Slots(settings, made.random("slots")),
    place=Stage.RUN,
    summary=lambda settings: [("slots", f"slots of {units.format_duration(settings.length_s)}")],
    kinds=(SATELLITE,),
    reader=_read,
)
