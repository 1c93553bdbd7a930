"""Models a walk past access points: signal strength, association, and handover. Pure.

The signal falls with the logarithm of the distance (ITU-R P.1238). The client keeps its access point
until another one is stronger by more than a hysteresis, or until it is lost. During the handover
nothing passes (break before make). The client keeps a new access point at least until the next
beacon.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from linklab.core import units
from linklab.core.bit_exact_math import log10
from linklab.models.keys import NODE_NAME, TIME
from linklab.models.layer import Steps
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import measure, number, one_named
from linklab.schema.rows import Listed, Row, Table

BEACON_S = 0.1024
"""The usual beacon interval: 100 time units of 1024 µs."""

_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Handover:
    """The outage of a handover, and what survives it.

    If the carrier does not survive, the client sees its link go down. If the address does not, the
    client gets another one, and its sockets break.
    """

    outage_s: float
    keeps_carrier: bool
    keeps_address: bool


HANDOVERS = {
    "fast-transition": Handover(0.05, keeps_carrier=True, keeps_address=True),
    "reassociation": Handover(0.3, keeps_carrier=False, keeps_address=True),
    "full-scan": Handover(1.5, keeps_carrier=False, keeps_address=True),
    "full-scan-dhcp": Handover(3.0, keeps_carrier=False, keeps_address=False),
}
"""In order: 802.11r; without it, within known channels; with a scan of every channel, which is over
90 % of the outage; the same into another network. The durations are assumption 3."""


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """An access point at a position in metres, or with the signal `signal_dbm` everywhere."""

    name: str
    x_m: float = 0.0
    y_m: float = 0.0
    signal_dbm: float | None = None


@dataclass(frozen=True, slots=True)
class Waypoint:
    """The client's position at a time."""

    t_s: float
    x_m: float = 0.0
    y_m: float = 0.0


@dataclass(frozen=True, slots=True)
class RoamingSettings:
    """The access points, and the client's path past them.

    The signal is `power_dbm` - `loss_1m_db` - 10 `exponent` · log10(distance in m). The defaults are
    for an indoor access point at 5 GHz. There free space has 47 dB at 1 m, P.1238 has an exponent of
    3.1 for an office, and walls add to it.

    Attributes:
        access_points: one or more, with different names.
        path: one or more waypoints in order of time. The client walks straight between them, and
            stands before and after.
        hysteresis_db: 0 to 30.
        power_dbm: -20 to 40.
        loss_1m_db: 0 to 100.
        exponent: 1 to 8.
    """

    access_points: tuple[AccessPoint, ...]
    path: tuple[Waypoint, ...] = (Waypoint(0.0, 0.0, 0.0),)
    handover: Handover = HANDOVERS["reassociation"]
    hysteresis_db: float = 6.0
    power_dbm: float = 17.0
    loss_1m_db: float = 47.0
    exponent: float = 3.5


@dataclass(frozen=True, slots=True)
class Attachment:
    """The client's access point and signal.

    While it has none, `access_point` is "" and `signal_dbm` None; `carrier` then tells whether its
    link still seems up. `lease` is the number of its address, from 0.
    """

    access_point: str
    signal_dbm: float | None
    carrier: bool
    lease: int


class Roaming:
    """Follows the path. The run begins with the strongest access point in reach.

    After a forced handover the client keeps the forced access point longer. It leaves when the lead
    of another one has grown by the hysteresis since then, or when the forced one is lost.

    Args:
        join_dbm: the least signal for joining an access point.
        leave_dbm: an access point is lost below this signal; at most `join_dbm`.
        forced: handovers whatever the signals are: (time, name of the access point, or None for
            the strongest other one).

    Raises ValueError for a forced handover to an unknown access point.
    """

    def __init__(
        self,
        settings: RoamingSettings,
        join_dbm: float,
        leave_dbm: float,
        forced: Iterable[tuple[float, str | None]] = (),
    ) -> None:
        self._settings = settings
        self._points = {point.name: point for point in settings.access_points}
        self._join_dbm = join_dbm
        self._leave_dbm = leave_dbm
        self._beacons = Steps(BEACON_S)
        self._forced: list[tuple[float, str | None]] = []
        self._lease = 0
        self._advantage_db = 0.0
        self._breaking: tuple[float, str, bool] | None = None
        self._settled_s = 0.0
        self._now_s = 0.0
        self._at = self._strongest(0.0) or ""
        self._due_s = self._look_ahead()
        for t_s, target in forced:
            self.force(t_s, target)

    def force(self, t_s: float, target: str | None = None) -> None:
        """Starts a handover at `t_s`, or now if that is past, to `target` or the strongest other.

        If no other is in reach, the client joins its access point again. The handover replaces one
        in progress. Raises ValueError for an unknown access point.
        """
        if target is not None and target not in self._points:
            raise ValueError(
                f"{target!r} is no access point; allowed: {', '.join(sorted(self._points))}"
            )
        bisect.insort(self._forced, (t_s, target), key=lambda one: one[0])
        self._due_s = min(self._due_s, t_s)

    def at(self, t_s: float) -> Attachment:
        """Returns the attachment from `t_s` seconds after the start on. `t_s` must never decrease."""
        while self._due_s <= t_s:
            self._now_s = max(self._now_s, self._due_s)
            self._happen()
            self._due_s = self._look_ahead()
        self._now_s = t_s
        if self._breaking or not self._at:
            carrier = bool(self._breaking) and self._settings.handover.keeps_carrier
            return Attachment("", None, carrier, self._lease)
        return Attachment(self._at, self._signal_dbm(self._at, t_s), True, self._lease)

    def next_s(self) -> float:
        """Returns the exact start or end of the next handover, or the next beacon while walking."""
        return self._due_s

    def _look_ahead(self) -> float:
        """Returns the time of the next change, at most the next beacon."""
        times = [self._forced[0][0]] if self._forced else []
        if self._breaking:
            return min([*times, self._breaking[0]])
        if self._now_s < self._settled_s:
            return min([*times, self._settled_s])
        if self._wanted(self._now_s) is not None:
            return min([*times, self._now_s])
        until_s = self._moves_until_s()
        if self._wanted(until_s) is not None:
            until_s = _first(lambda t_s: self._wanted(t_s) is not None, self._now_s, until_s)
        return min([*times, until_s])

    def _moves_until_s(self) -> float:
        """Returns the next beacon if the client walks now, else when it starts; inf for never."""
        path = self._settings.path
        index = bisect.bisect_right(path, self._now_s, key=lambda point: point.t_s)
        for last, following in zip(path[max(index - 1, 0) :], path[max(index, 1) :], strict=False):
            if (last.x_m, last.y_m) != (following.x_m, following.y_m):
                return max(last.t_s, self._beacons.after(self._now_s))
        return math.inf

    def _happen(self) -> None:
        if self._forced and self._forced[0][0] <= self._now_s:
            _, target = self._forced.pop(0)
            target = target or self._strongest(self._now_s, but=self._at) or self._at
            if target:
                self._leave_for(target, forced=True)
        elif self._breaking:
            _, target, is_forced = self._breaking
            self._breaking = None
            self._arrive(target, is_forced)
        else:
            target = self._wanted(self._now_s)
            if target:
                self._leave_for(target, forced=False)
            elif target is not None:
                self._at = ""

    def _leave_for(self, target: str, *, forced: bool) -> None:
        self._breaking = (self._now_s + self._settings.handover.outage_s, target, forced)

    def _arrive(self, target: str, forced: bool) -> None:
        signal_dbm = self._signal_dbm(target, self._now_s)
        if signal_dbm < self._leave_dbm:
            self._at = ""
            return
        self._at = target
        self._settled_s = self._beacons.after(self._now_s)
        if not self._settings.handover.keeps_address:
            self._lease += 1
        strongest = self._strongest(self._now_s, but=target)
        ahead_db = self._signal_dbm(strongest, self._now_s) - signal_dbm if strongest else 0.0
        self._advantage_db = max(0.0, ahead_db) if forced else 0.0

    def _wanted(self, t_s: float) -> str | None:
        """Returns the access point to go to; "" if none is in reach, None to stay."""
        other = self._strongest(t_s, but=self._at)
        if not self._at:
            return other
        signal_dbm = self._signal_dbm(self._at, t_s)
        if signal_dbm < self._leave_dbm:
            return other or ""
        ahead_db = self._signal_dbm(other, t_s) - signal_dbm if other else -math.inf
        return other if ahead_db > self._settings.hysteresis_db + self._advantage_db else None

    def _strongest(self, t_s: float, but: str = "") -> str | None:
        """Returns the strongest access point that can be joined; the first of equals."""
        signals = {name: self._signal_dbm(name, t_s) for name in self._points if name != but}
        best = max(signals, key=signals.__getitem__, default=None)
        return best if best is not None and signals[best] >= self._join_dbm else None

    def _signal_dbm(self, name: str, t_s: float) -> float:
        point, settings = self._points[name], self._settings
        if point.signal_dbm is not None:
            return point.signal_dbm
        x_m, y_m = position_m(settings.path, t_s)
        squared_m2 = (x_m - point.x_m) * (x_m - point.x_m) + (y_m - point.y_m) * (y_m - point.y_m)
        loss_db = settings.loss_1m_db + 5 * settings.exponent * log10(max(1.0, squared_m2))
        return settings.power_dbm - loss_db


def position_m(path: tuple[Waypoint, ...], t_s: float) -> tuple[float, float]:
    """Returns the client's position: on a line between waypoints, at an end outside them."""
    index = bisect.bisect_right(path, t_s, key=lambda point: point.t_s)
    if index in (0, len(path)):
        end = path[0 if index == 0 else -1]
        return end.x_m, end.y_m
    last, following = path[index - 1], path[index]
    done = (t_s - last.t_s) / (following.t_s - last.t_s)
    return (
        last.x_m + done * (following.x_m - last.x_m),
        last.y_m + done * (following.y_m - last.y_m),
    )


def _first(happens: Callable[[float], bool], before_s: float, after_s: float) -> float:
    """Returns the first time at which `happens` is true, to less than 1 ns, by bisection.

    It must be true at `after_s`.
    """
    for _ in range(_HALVINGS):
        middle_s = (before_s + after_s) / 2
        if happens(middle_s):
            after_s = middle_s
        else:
            before_s = middle_s
    return after_s


_PLACE: Final = measure("m", -100_000.0, 100_000.0)

ACCESS_POINT: Final = Table(
    AccessPoint,
    (
        Row("name", "name", NODE_NAME, "its name, which no other node of the lab has", needed=True),
        Row("x", "x_m", _PLACE, "where it is"),
        Row("y", "y_m", _PLACE, "where it is"),
        Row(
            "signal",
            "signal_dbm",
            measure("dBm", -120.0, 0.0),
            "a constant signal, instead of `x` and `y`",
            unset=None,
        ),
    ),
)

WAYPOINT: Final = Table(
    Waypoint,
    (
        Row("at", "t_s", TIME, "when the client is there", needed=True),
        Row("x", "x_m", _PLACE, "where it is"),
        Row("y", "y_m", _PLACE, "where it is"),
    ),
    about="The client walks straight from one point to the next, and stands before and after.",
)


def _check_some(radio: Mapping, points: list[tuple[Mapping, AccessPoint]]) -> None:
    if not points:
        radio.fail("access_points", "is empty; needed: at least one access point")


def _check_order(radio: Mapping, points: list[tuple[Mapping, Waypoint]]) -> None:
    last_s = -1.0
    for item, point in points:
        if point.t_s <= last_s:
            item.fail("at", f"is not after {units.format_duration(last_s)}, the waypoint before it")
        last_s = point.t_s


def check_names(radio: Mapping, settings: RoamingSettings, taken: set[str]) -> None:
    """Refuses access points with a name in `taken`, and adds the other names. They are lab nodes."""
    items = radio.items("access_points", ACCESS_POINT.keys)
    for item, point in zip(items, settings.access_points, strict=True):
        if point.name in taken:
            item.fail("name", f"{point.name!r} is taken; allowed: any other name")
        taken.add(point.name)


TABLE: Final = Table(
    RoamingSettings,
    (
        Row(
            "handover",
            "handover",
            one_named({value: name for name, value in HANDOVERS.items()}),
            "how the client changes its access point",
        ),
        Row(
            "hysteresis",
            "hysteresis_db",
            measure("dB", 0.0, 30.0),
            "how much stronger another access point must be before the client changes",
        ),
        Row(
            "power", "power_dbm", measure("dBm", -20.0, 40.0), "transmit power of the access points"
        ),
        Row("loss_1m", "loss_1m_db", measure("dB", 0.0, 100.0), "path loss at one metre"),
        Row(
            "exponent",
            "exponent",
            number(1.0, 8.0),
            "how fast the signal fades: exponent of the path loss",
        ),
        Row(
            "access_points",
            "access_points",
            Listed(ACCESS_POINT, _check_some),
            "one or more access points",
            needed=True,
        ),
        Row("path", "path", Listed(WAYPOINT, _check_order), "where the client walks"),
    ),
)
