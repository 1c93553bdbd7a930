"""Models a token bucket: fast at first, then the rate of the contract. Pure.

A DOCSIS modem may send at a peak rate until it has used up a burst of bytes. The bucket fills with the
sustained rate. DOCSIS calls them Maximum Traffic Burst, Peak Traffic Rate and Maximum Sustained Traffic
Rate. 10 MB is an assumption. Cellular operators throttle likewise: Wehe saw up to 20 Mbit/s for about
7 MB, then 1.5 Mbit/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from linklab.core import units
from linklab.core.link_kinds import FIVE_G, FIXED, LTE
from linklab.core.link_state import LinkState
from linklab.models.keys import RATE
from linklab.models.layer import STEP_S, Layer, Load, Steps
from linklab.models.model import Around, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import size
from linklab.schema.rows import Row, Table


@dataclass(frozen=True, slots=True)
class BoostSettings:
    """The peak rates of both directions, and the bytes of a bucket.

    Attributes:
        down_peak_bps, up_peak_bps: at least the link's rate. None: no bucket in that direction.
        burst_bytes: what a full bucket carries at the peak beyond the sustained rate (1 kB to 1 GB).
    """

    down_peak_bps: int | None = None
    up_peak_bps: int | None = None
    burst_bytes: int = 10_000_000


class _Bucket:
    """The tokens of one direction. It is full at the start."""

    def __init__(self, peak_bps: int, burst_bytes: int, step_s: float) -> None:
        self.peak_bps = peak_bps
        self._burst_bytes = burst_bytes
        self._step_s = step_s
        self._tokens_bytes = float(burst_bytes)
        self._now_s = 0.0
        self._carried_bytes = 0
        self._sustained_bps = 0
        self.is_open = True

    def follow(self, t_s: float, carried_bytes: int, sustained_bps: int) -> None:
        """Counts the bytes since the last call. The bucket opens again with a step's worth."""
        self._tokens_bytes += (t_s - self._now_s) * sustained_bps / 8
        self._tokens_bytes -= carried_bytes - self._carried_bytes
        self._tokens_bytes = min(self._tokens_bytes, self._burst_bytes)
        self._now_s, self._carried_bytes = t_s, carried_bytes
        self._sustained_bps = sustained_bps
        beyond_bytes_per_s = (self.peak_bps - sustained_bps) / 8
        least = 1.0 if self.is_open else min(self._step_s * beyond_bytes_per_s, self._burst_bytes)
        self.is_open = self._tokens_bytes >= least

    def empty_s(self) -> float:
        """Returns when a full load at the peak rate empties the bucket."""
        beyond_bytes_per_s = (self.peak_bps - self._sustained_bps) / 8
        if not self.is_open or beyond_bytes_per_s <= 0:
            return math.inf
        return self._now_s + max(1e-3, self._tokens_bytes / beyond_bytes_per_s)


class Boost(Layer):
    """Raises the rate of a direction to its peak while its bucket has tokens."""

    wants_load = True

    def __init__(self, settings: BoostSettings, step_s: float = STEP_S) -> None:
        def bucket(peak_bps: int | None) -> _Bucket | None:
            return None if peak_bps is None else _Bucket(peak_bps, settings.burst_bytes, step_s)

        self._down = bucket(settings.down_peak_bps)
        self._up = bucket(settings.up_peak_bps)
        self._steps = Steps(step_s)
        self._now_s = 0.0

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        self._now_s = t_s
        down_bps, up_bps = state.down_rate_bps, state.up_rate_bps
        if self._down is not None:
            self._down.follow(t_s, load.down_bytes, down_bps)
            down_bps = self._down.peak_bps if self._down.is_open else down_bps
        if self._up is not None:
            self._up.follow(t_s, load.up_bytes, up_bps)
            up_bps = self._up.peak_bps if self._up.is_open else up_bps
        return replace(state, down_rate_bps=down_bps, up_rate_bps=up_bps)

    def next_s(self) -> float:
        """Returns the next step, or the time at which a bucket is empty under full load."""
        buckets = [one for one in (self._down, self._up) if one is not None]
        return min(self._steps.after(self._now_s), *(one.empty_s() for one in buckets))


TABLE: Final = Table(
    BoostSettings,
    (
        Row("down", "down_peak_bps", RATE, "peak rate of the downlink", unset=None),
        Row("up", "up_peak_bps", RATE, "peak rate of the uplink", unset=None),
        Row(
            "burst",
            "burst_bytes",
            size(1_000, 1_000_000_000),
            "bytes beyond the link's rate that a full bucket carries",
        ),
    ),
    about="A token bucket: the link is faster until its burst is used up, and recovers when idle.",
)

_ROW: Final = Row("boost", "boost", TABLE, "a token bucket that allows bursts at a peak rate")


def _read(link: Mapping, around: Around) -> BoostSettings | None:
    if not link.has(_ROW.key):
        return None
    mapping = link.sub(_ROW.key, TABLE.keys)
    settings = TABLE.of(mapping)
    if settings.down_peak_bps is None and settings.up_peak_bps is None:
        mapping.fail(None, "boosts nothing; needed: `down` or `up`")
    for key, peak_bps, rate_bps in (
        ("down", settings.down_peak_bps, around.down_rate_bps),
        ("up", settings.up_peak_bps, around.up_rate_bps),
    ):
        if peak_bps is not None and peak_bps < rate_bps:
            mapping.fail(
                key,
                f"{units.format_rate(peak_bps)} is less than the link's rate; allowed: at least "
                f"{units.format_rate(rate_bps)}",
            )
    return settings


MODEL: Final = Model(
    BoostSettings,
    (_ROW,),
    layer=lambda settings, made: Boost(settings, made.step_s),
    place=Stage.RUN,
    summary=lambda settings: [(_ROW.key, f"bursts of {units.format_size(settings.burst_bytes)}")],
    kinds=(LTE, FIVE_G, FIXED),
    reader=_read,
)
