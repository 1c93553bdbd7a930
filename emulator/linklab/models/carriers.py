"""Models LTE carrier aggregation: load adds carriers one by one, idle time removes them. Pure.

The standards add a carrier within 8 to 34 ms from the activation command (3GPP TS 36.133, 7.7). They
remove it after `sCellDeactivationTimer`, 20 ms to 1.28 s without data on it (TS 36.331, 6.3.2
`MAC-MainConfig`; TS 36.321, 5.13).

The network's decision takes seconds. Thesis 3.1.4 saw a build-up of about 2.5 s on average, and
sometimes 15 to 20 s. Section 5.1.1 has one of 10 s, and 5.2.2 runs without any. So the ramp follows
what a base station sees: queued bytes and idle time. Only the downlink is aggregated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Literal

from linklab.core.link_kinds import FIVE_G, LTE
from linklab.core.link_state import LinkState
from linklab.models import draws
from linklab.models.layer import STEP_S, Load, Steps
from linklab.models.model import Happening, Model, Stage
from linklab.schema.quantities import choice, count, duration, number, ratio, size
from linklab.schema.rows import Row, Table

SLOW_S = (10.0, 20.0)
"""The duration of a slow ramp is uniformly distributed between these (thesis 3.1.4 and 5.1.1)."""

_DEVICE = 0


@dataclass(frozen=True, slots=True)
class CarrierSettings:
    """The settings of a link's carriers.

    Attributes:
        count: carriers at full aggregation: 2 on the Samsung S6, 3 on the S7 (thesis 5.1.1). 1 to 32
            are allowed; Release 10 has 5.
        first_share: share of the full rate with the first carrier (above 0 to 1). The others add
            equal shares.
        trigger_bytes, trigger_s: the ramp begins when this much (1 B to 100 MB) has been queued for
            the downlink for this time (0 to 10 s). The defaults are a vendor's.
        delay_median_s: median of the ramp's duration (1 ms to 600 s), which is lognormal. Time
            counts while `trigger_bytes` are queued.
        delay_sigma: standard deviation of its logarithm (0 to 3). With 0.3, 90 % of the ramps take
            1.5 to 4.1 s, and 2.6 s on average, like the thesis' typical build-up.
        slow_probability: share of the ramps that take `SLOW_S` instead (0 to 1).
        never_probability: share of the runs that keep the first carrier (0 to 1). Thesis figure
            5.6a has such runs "around the 0.2 mark" of its axis. That is 20 Mbit/s if the axis ends
            at 10^8 bit/s.
        idle_s: without downlink traffic for this time (20 ms to 60 s) all starts again. The default
            is the longest `sCellDeactivationTimer`.
        key: the "device" has one ramp, or each TCP "connection" has its own (thesis 4.4.3.3).
    """

    count: int
    first_share: float = 0.4
    delay_median_s: float = 2.5
    delay_sigma: float = 0.3
    slow_probability: float = 0.1
    never_probability: float = 0.0
    trigger_bytes: int = 9000
    trigger_s: float = 0.05
    idle_s: float = 1.28
    key: Literal["device", "connection"] = "device"


@dataclass(slots=True)
class _Ramp:
    """A ramp. While a started ramp is paused, `loaded_since_s` moves on."""

    loaded_since_s: float
    delay_s: float | None = None
    carriers: int = 1

    def up_s(self, carrier: int, settings: CarrierSettings) -> float:
        """Returns when a carrier is added if the load lasts."""
        begun_s = self.loaded_since_s + settings.trigger_s
        if self.delay_s is None:
            return begun_s
        return begun_s + self.delay_s * (carrier - 1) / (settings.count - 1)


class Carriers:
    """Limits the downlink to the share of the full rate that its carriers give.

    With the key "connection" the open connection with the most carriers decides. Queued bytes count
    for all connections, because a queue does not tell whose bytes it holds.
    """

    def __init__(self, settings: CarrierSettings, random: Random, step_s: float = STEP_S) -> None:
        self._settings = settings
        self._random = random
        self._steps = Steps(step_s)
        self._watch_s = max(step_s, settings.idle_s / 8)
        never = random.random() < settings.never_probability
        self._reachable = 1 if never else settings.count
        self._ramps: dict[int, _Ramp] = {}
        self._now_s = 0.0
        self._traffic_s = 0.0
        self._loaded = False
        self._down_bytes = 0

    @property
    def wants_load(self) -> bool:
        """Whether further carriers can be added."""
        return self._reachable > 1

    @property
    def wants_connections(self) -> bool:
        """Whether each connection has its own ramp, so that open connections matter."""
        return self.wants_load and self._settings.key == "connection"

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        if self.wants_load:
            self._follow(t_s, load)
        carriers = self._carriers()
        share = 1.0
        if carriers < self._settings.count:
            first = self._settings.first_share
            share = first + (1 - first) * (carriers - 1) / (self._settings.count - 1)
        rate = max(1, round(state.down_rate_bps * share))
        return replace(state, down_rate_bps=rate, carriers=carriers)

    def next_s(self) -> float:
        """Returns the time of the next carrier or of the next look at the load.

        The load is looked at every step. With all carriers, only idle time matters: it is noticed
        at most `idle_s` / 8 late.
        """
        if not self.wants_load:
            return math.inf
        if self._carriers() == self._reachable:
            return min(self._now_s + self._watch_s, self._traffic_s + self._settings.idle_s)
        times = [self._steps.after(self._now_s)]
        if self._loaded:
            times += [ramp.up_s(ramp.carriers + 1, self._settings) for ramp in self._waiting()]
        return min(times)

    def _carriers(self) -> int:
        return max((ramp.carriers for ramp in self._ramps.values()), default=1)

    def _waiting(self) -> list[_Ramp]:
        return [ramp for ramp in self._ramps.values() if ramp.carriers < self._reachable]

    def _follow(self, t_s: float, load: Load) -> None:
        settings = self._settings
        if load.down_bytes != self._down_bytes or load.down_backlog_bytes > 0:
            self._traffic_s = t_s
        elif t_s >= self._traffic_s + settings.idle_s:
            self._ramps.clear()
        self._down_bytes = load.down_bytes
        keys = load.connections if settings.key == "connection" else frozenset((_DEVICE,))
        self._ramps = {key: ramp for key, ramp in self._ramps.items() if key in keys}
        if not self._loaded:
            self._pause(t_s - self._now_s)
        self._now_s = t_s
        self._loaded = load.down_backlog_bytes >= settings.trigger_bytes
        if self._loaded:
            for key in sorted(keys):
                self._climb(self._ramps.setdefault(key, _Ramp(t_s)), t_s)

    def _pause(self, elapsed_s: float) -> None:
        """Excludes time without load. Before the trigger such time resets the ramp."""
        self._ramps = {key: one for key, one in self._ramps.items() if one.delay_s is not None}
        for ramp in self._ramps.values():
            ramp.loaded_since_s += elapsed_s

    def _climb(self, ramp: _Ramp, t_s: float) -> None:
        if ramp.delay_s is None and t_s >= ramp.up_s(1, self._settings):
            ramp.delay_s = self._drawn_delay_s()
        while (
            ramp.delay_s is not None
            and ramp.carriers < self._reachable
            and t_s >= ramp.up_s(ramp.carriers + 1, self._settings)
        ):
            ramp.carriers += 1

    def _drawn_delay_s(self) -> float:
        settings = self._settings
        if self._random.random() < settings.slow_probability:
            return self._random.uniform(*SLOW_S)
        return draws.lognormal(self._random, settings.delay_median_s, settings.delay_sigma)


TABLE: Final = Table(
    CarrierSettings,
    (
        Row("count", "count", count(1, 32), "number of carriers when all are added", needed=True),
        Row(
            "first",
            "first_share",
            ratio(0.001, 1.0),
            "part of the rate that the first carrier has",
        ),
        Row(
            "delay",
            "delay_median_s",
            duration(1e-3, 600.0),
            "median time from the trigger until all carriers are added",
        ),
        Row(
            "sigma",
            "delay_sigma",
            number(0.0, 3.0),
            "how much `delay` varies: standard deviation of its logarithm",
        ),
        Row(
            "slow",
            "slow_probability",
            ratio(),
            "share of cases in which it takes 10 to 20 s instead",
        ),
        Row(
            "never", "never_probability", ratio(), "share of runs that keep the first carrier only"
        ),
        Row(
            "trigger",
            "trigger_bytes",
            size(1, 100_000_000),
            "bytes in the queue from which carriers are added",
        ),
        Row(
            "trigger_time",
            "trigger_s",
            duration(0.0, 10.0),
            "how long these bytes must be in the queue",
        ),
        Row(
            "idle",
            "idle_s",
            duration(0.02, 60.0),
            "time without traffic after which only the first carrier is left",
        ),
        Row(
            "key",
            "key",
            choice("device", "connection"),
            "device: carriers are added once for the device; connection: for each TCP connection",
        ),
    ),
    about="Load adds downlink carriers one after the other. Idle time removes them.",
)


def _transitions(before: LinkState, after: LinkState) -> list[Happening]:
    if before.carriers == after.carriers:
        return []
    return [Happening("carriers", str(after.carriers))]


MODEL: Final = Model(
    CarrierSettings,
    (Row("carriers", "carriers", TABLE, "carrier aggregation"),),
    layer=lambda settings, made: Carriers(settings, made.random("carriers"), made.step_s),
    place=Stage.RADIO,
    summary=lambda settings: [("carriers", f"{settings.count} carriers")],
    kinds=(LTE, FIVE_G),
    transitions=_transitions,
    happenings=("carriers",),
)
