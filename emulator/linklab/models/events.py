"""Applies a scenario's events to a link, at a time or after a number of received bytes. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from linklab.core.bounded import Bps, Bytes, Name, Ratio, Seconds
from linklab.core.impairments import Impairments
from linklab.core.limits import MAX_RATE_BPS, MIN_RATE_BPS
from linklab.core.link_state import Direction, LinkState
from linklab.models import impairments
from linklab.models.keys import LENGTH, NODE_NAME, RATE, ROUND_TRIP, SHARE, SIZE, TIME
from linklab.models.layer import STEP_S, Layer, Load, Steps
from linklab.models.model import Happening
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import BOOLEAN, QUEUE, Quantity, choice, rate
from linklab.schema.rows import Row, Table

T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one link for `duration_s`, from `at_s` on or after `after_bytes` on.

    `after_bytes` counts the payload received over all links. None leaves a value as earlier events
    and the layers below have it. A value replaces that of earlier events.

    Attributes:
        carrier: "up" or "down". "up" ends a "down"; it does not restore a carrier that a radio
            lacks.
        down_rate_bps, up_rate_bps, rtt_s, jitter_s, loss_ratio, queue_bytes: replace the values of
            the layers below.
        fade_ratio: the share of both rates that is left.
        cap_bps: upper limit of both faded rates.
        cross_bps: downlink bandwidth used by cross traffic, less than the capped rate.
        outage: all packets are lost, also queued ones, and the client cannot see it. False ends an
            earlier outage; it does not end that of a layer below.
        handover: name of the target access point, or "next".
        impair_down, impair_up: replace the impairments that they set.
    """

    link: Name
    at_s: float | None = None
    after_bytes: int | None = None
    duration_s: float = math.inf
    carrier: Name | None = None
    down_rate_bps: Bps | None = None
    up_rate_bps: Bps | None = None
    rtt_s: Seconds | None = None
    jitter_s: Seconds | None = None
    loss_ratio: Ratio | None = None
    fade_ratio: Ratio | None = None
    cap_bps: Bps | None = None
    cross_bps: Bps | None = None
    outage: bool | None = None
    handover: Name | None = None
    queue_bytes: Bytes | None = None
    impair_down: Impairments | UnsetType = UNSET
    impair_up: Impairments | UnsetType = UNSET

    @property
    def kind(self) -> str:
        """One word for the event, by its strongest change."""
        if self.carrier is not None:
            return f"carrier-{self.carrier}"
        named = {
            "outage": self.outage or None,  # Its end shows in the state (`transitions`).
            "handover": self.handover,
            "fade": self.fade_ratio,
            "cap": self.cap_bps,
            "cross": self.cross_bps,
            "rate": self.down_rate_bps or self.up_rate_bps,
            "loss": self.loss_ratio,
            "queue": self.queue_bytes,
            "delay": self.jitter_s if self.rtt_s is None else self.rtt_s,
            "impair": self.impair_down or self.impair_up or None,
            "outage-end": self.outage,
        }
        return next((name for name, value in named.items() if value is not None), "delay")


class Events(Layer):
    """Applies a link's events over the layers below. For each key the latest event counts that has it.

    `add` adds an event while the link is running (`linklab link`).
    """

    def __init__(self, events: Iterable[Event], step_s: float = STEP_S) -> None:
        self._steps = Steps(step_s)
        self._active: list[tuple[float, Event]] = []
        self._timed: list[tuple[float, Event]] = []
        self._awaited: list[Event] = []
        self._begun: list[Event] = []
        self._ended: list[Event] = []
        self._now_s = -math.inf
        for event in events:
            self.add(event)

    @property
    def wants_load(self) -> bool:
        """Whether any event still waits for received bytes."""
        return bool(self._awaited)

    def add(self, event: Event) -> None:
        """Adds an event. If its time is past, it begins at the next call of `apply`."""
        if event.after_bytes is not None:
            self._awaited.append(event)
        else:
            self._timed.append((event.at_s or 0.0, event))
            self._timed.sort(key=lambda one: one[0])

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        self._now_s = t_s
        for event in [e for e in self._awaited if (e.after_bytes or 0) <= load.received_bytes]:
            self._awaited.remove(event)
            self._begin(t_s, event)
        while self._timed and self._timed[0][0] <= t_s:
            self._begin(*self._timed.pop(0))
        self._ended += [e for begun, e in self._active if t_s >= begun + e.duration_s]
        self._active = [(begun, e) for begun, e in self._active if t_s < begun + e.duration_s]
        if not self._active:
            return state
        return _changed(state, _together(event for _, event in self._active))

    def _begin(self, t_s: float, event: Event) -> None:
        self._active.append((t_s, event))
        self._begun.append(event)

    def end(self, wanted: Collection[Event]) -> None:
        """Ends active events before their time; the next `apply` shows it."""
        self._ended += [event for _, event in self._active if event in wanted]
        self._active = [(begun, event) for begun, event in self._active if event not in wanted]

    def begun(self) -> list[Event]:
        """Returns the events that have begun since the last call."""
        begun, self._begun = self._begun, []
        return begun

    def ended(self) -> list[Event]:
        """Returns the events that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def next_s(self) -> float:
        """Returns the next start or end of an event; the next step while an event waits for bytes."""
        times = [begun + event.duration_s for begun, event in self._active]
        times += [at_s for at_s, _ in self._timed[:1]]
        if self._awaited:
            times.append(self._steps.after(self._now_s))
        return min(times, default=math.inf)


def in_force(events: Iterable[Event], later: Event) -> list[Event]:
    """Returns those of `events` that still change the link of `later` when that begins.

    Events after bytes count if they last to the end, because nobody knows when they begin.
    """
    return [
        one
        for one in events
        if one.link == later.link
        and (
            math.isinf(one.duration_s)
            or (
                one.at_s is not None
                and later.at_s is not None
                and one.at_s + one.duration_s > later.at_s
            )
        )
    ]


class RoundTripChange(Protocol):
    """A change that may replace a link's round trip or jitter. None leaves a value unchanged."""

    @property
    def rtt_s(self) -> float | None:
        """The new round trip."""

    @property
    def jitter_s(self) -> float | None:
        """The new standard deviation of the one-way delay."""


def round_trip(
    rtt_s: float, jitter_s: float, changes: Iterable[RoundTripChange]
) -> tuple[float, float]:
    """Returns a link's round trip and jitter after some changes."""
    for one in changes:
        rtt_s, jitter_s = _or(one.rtt_s, rtt_s), _or(one.jitter_s, jitter_s)
    return rtt_s, jitter_s


def _together(events: Iterable[Event]) -> Event:
    """Returns one event with the last value of each key."""
    values: dict[str, Any] = {}
    for event in events:
        for row in CHANGES:
            value = getattr(event, row.attribute)
            if value is None or value is UNSET:
                continue
            earlier = values.get(row.attribute)
            values[row.attribute] = (
                earlier.changed(value) if isinstance(earlier, Impairments) else value
            )
    return Event("", **values)


def _changed(state: LinkState, event: Event) -> LinkState:
    down = _or(event.down_rate_bps, state.down_rate_bps)
    up = _or(event.up_rate_bps, state.up_rate_bps)
    if event.fade_ratio is not None:
        down, up = round(down * event.fade_ratio), round(up * event.fade_ratio)
    if event.cap_bps is not None:
        down, up = min(down, event.cap_bps), min(up, event.cap_bps)
    if event.cross_bps is not None:
        down -= event.cross_bps
    delay_s = state.delay_s if event.rtt_s is None else event.rtt_s / 2
    return replace(
        state,
        up=state.up and event.carrier != "down",
        down_rate_bps=max(down, MIN_RATE_BPS),
        up_rate_bps=max(up, MIN_RATE_BPS),
        hold_down=state.hold_down or down < MIN_RATE_BPS,
        hold_up=state.hold_up or up < MIN_RATE_BPS,
        delay_s=delay_s,
        jitter_s=min(_or(event.jitter_s, state.jitter_s), delay_s),
        loss_ratio=_or(event.loss_ratio, state.loss_ratio),
        loss_burst_packets=(
            state.loss_burst_packets if event.loss_ratio in (None, state.loss_ratio) else 1.0
        ),
        blackout=state.blackout or bool(event.outage),
        queue_bytes=state.queue_bytes if event.queue_bytes is None else event.queue_bytes,
        impair_down=_impaired(state, event, "down"),
        impair_up=_impaired(state, event, "up"),
    )


def _impaired(state: LinkState, event: Event, direction: Direction) -> Impairments | UnsetType:
    change = impairments.of(event, direction)
    if change is UNSET:
        return impairments.of(state, direction)
    return state.impairments(direction).changed(change)


def _or(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


_UNSEEN_KINDS: Final = ("fade", "cap", "cross", "rate", "loss", "queue", "impair", "delay")
"""Kinds of events that `transitions` cannot distinguish from changes by models."""

HAPPENINGS: Final = (
    *("carrier-down", "carrier-up", "outage", "outage-end"),
    *(f"{kind}{end}" for kind in _UNSEEN_KINDS for end in ("", "-end")),
)
"""The kinds that `noted` and `transitions` return."""


BY_HAND: Final = "live"
"""The kind of a user's change of a running link. Its detail describes the change."""

BY_HAND_END: Final = f"{BY_HAND}-end"
"""The kind of the end of such a change, with the same detail."""

BEGUN_ANEW: Final = "restored"
"""The kind of the scenario's new start in a running lab. Its detail has what goes on as it was."""

REFUSED: Final = "refused"
"""The kind of a change that the lab cannot make. Its detail says why."""


def noted(begun: Iterable[Event], ended: Iterable[Event]) -> list[Happening]:
    """Returns the starts and ends of events that link states do not show (`transitions`)."""
    return [
        *(Happening(event.kind) for event in begun if event.kind in _UNSEEN_KINDS),
        *(Happening(f"{event.kind}-end") for event in ended if event.kind in _UNSEEN_KINDS),
    ]


def transitions(before: LinkState, after: LinkState) -> list[Happening]:
    """Returns what happened to a link's carrier and packets between two states."""
    found = []
    if before.up != after.up:
        found.append(Happening("carrier-up" if after.up else "carrier-down"))
    if before.blackout != after.blackout:
        found.append(Happening("outage" if after.blackout else "outage-end"))
    return found


_LINK: Final = Quantity(str, str, "the name of a link")

_MOMENT: Final = (
    Row(
        "at",
        "at_s",
        TIME,
        "when the event begins, from the scenario's start, which is the client's without `--shift`; either `at` or `after` is needed",
        unset=None,
    ),
    Row(
        "after",
        "after_bytes",
        SIZE,
        "the event begins after these bytes of the payload, over all links",
        unset=None,
    ),
    Row("link", "link", _LINK, "which link it happens to", needed=True),
)

_FOR: Final = Row(
    "for",
    "duration_s",
    LENGTH,
    "how long the event lasts; without it, to the end",
    unset=math.inf,
)

CHANGES: Final = (
    Row(
        "carrier",
        "carrier",
        choice("up", "down"),
        "down: nothing passes, and the client sees that",
        unset=None,
    ),
    Row("down", "down_rate_bps", RATE, "downlink rate", unset=None),
    Row("up", "up_rate_bps", RATE, "uplink rate", unset=None),
    Row("rtt", "rtt_s", ROUND_TRIP, "round-trip time", unset=None),
    Row("jitter", "jitter_s", ROUND_TRIP, "standard deviation of the one-way delay", unset=None),
    Row("loss", "loss_ratio", SHARE, "downlink packets lost", unset=None),
    Row("queue", "queue_bytes", QUEUE, "size of the queue, in both directions", unset=None),
    Row(
        "fade",
        "fade_ratio",
        SHARE,
        "both rates, or `down` and `up` of any event, are multiplied by this; 100 % ends a fade",
        unset=None,
    ),
    Row("cap", "cap_bps", RATE, "highest rate of both directions, after `fade`", unset=None),
    Row(
        "cross",
        "cross_bps",
        rate(0, MAX_RATE_BPS),
        "downlink rate used by other traffic, after `cap`",
        unset=None,
    ),
    Row(
        "outage",
        "outage",
        BOOLEAN,
        "true: all packets are lost, and the client does not see that; false ends it",
        unset=None,
    ),
    Row(
        "handover",
        "handover",
        NODE_NAME,
        "name of the access point to change to, or next",
        unset=None,
    ),
    *impairments.ROWS,
)
"""What an event can change. A live change takes the same keys."""


def _check_changes(item: Mapping, event: Event) -> None:
    changes = [row.key for row in CHANGES]
    if not any(item.has(key) for key in changes):
        item.fail(None, f"changes nothing; allowed: any of {', '.join(changes)}")


def _check(item: Mapping, event: Event) -> None:
    if item.has("at") == item.has("after"):
        item.fail(None, "needs a moment; allowed: one of at (a time) and after (bytes received)")
    _check_changes(item, event)


LIVE: Final = Table(Event, (_FOR, *CHANGES), _check_changes)
"""A change of a running link: an event without its moment and its link."""

TABLE: Final = Table(
    Event,
    (*_MOMENT, _FOR, *CHANGES),
    _check,
    about="In time order for each link. Of two at the same time the later one in the file counts. What "
    "an event leaves out stays as it is. A key's value replaces that of earlier events: two fades do not "
    "multiply, and a higher cap counts after a lower one.",
)


def in_words(event: Event) -> str:
    """Describes what an event does, such as "down 3 Mbit/s for 5 s, loss 1 % for 5 s". Each part
    begins with the changed key."""
    written = LIVE.write(event)
    span = f" for {written.pop('for')}" if "for" in written else ""
    said = []
    for key, value in written.items():
        if isinstance(value, dict):
            said += [f"{key}.{one} {impairments.text(inner)}" for one, inner in value.items()]
        else:
            said.append(key if value is True else f"{key} {impairments.text(value)}")
    return ", ".join(one + span for one in said)
