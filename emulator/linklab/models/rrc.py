"""Models the states of an LTE or 5G radio: sleep between transfers, and the time to wake. Pure.

    idle ──backlog──▶ promotion ──▶ connected ──inactivity──▶ drx ──tail──▶ idle
              ▲                         ▲───────traffic────────┘
              └──backlog── inactive ◀── drx, on 5G with `inactive`

The states follow 3GPP TS 36.331 (RRC_IDLE, RRC_CONNECTED) and TS 36.321, 5.7 (discontinuous
reception, DRX). Huang measured the times: promotion 260 ms, DRX after 100 ms in cycles of 40 ms. The
tail of 11.2 s is from GreenBag IV.C.

5G has RRC_INACTIVE between DRX and idle: the network keeps the context of the phone, so waking takes
less (3GPP TS 38.331, 5.3.13). SIGCOMM 2021 measured 140 ms on a standalone network 12 to 14 s after
the last packet, and suspected this state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from linklab.core import units
from linklab.core.link_kinds import FIVE_G, LTE
from linklab.core.link_state import CONNECTED, LinkState
from linklab.models.layer import STEP_S, Layer, Load, Steps
from linklab.models.model import Happening, Model, Stage
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import duration
from linklab.schema.rows import Row, Table

IDLE = "idle"
PROMOTION = "promotion"
DRX = "drx"
INACTIVE = "inactive"

RESUME_S: Final = 0.14


@dataclass(frozen=True, slots=True)
class RrcSettings:
    """The radio's timers.

    Attributes:
        promotion_s: from the first queued packet to the connected state (0 to 10 s).
        inactivity_s: from the last packet to DRX (1 ms to 10 s).
        drx_cycle_s: interval at which the network can reach a phone in DRX (10 ms to 10.24 s, as in
            TS 36.331).
        tail_s: from the last packet to idle (more than `inactivity_s`, to 600 s).
        inactive_s: from the last packet to RRC_INACTIVE (1 ms to 600 s); None without this state.
        resume_s: from the first queued packet in RRC_INACTIVE to connected (0 to 10 s).
    """

    promotion_s: float = 0.26
    inactivity_s: float = 0.1
    drx_cycle_s: float = 0.04
    tail_s: float = 11.2
    inactive_s: float | None = None
    resume_s: float = RESUME_S


class Rrc(Layer):
    """Stops the queues of a radio that is not awake. The run begins in idle.

    In idle both directions wait, and a packet in either queue starts the promotion. In DRX the
    downlink waits for the next multiple of the cycle with queued packets. The uplink passes at once
    and wakes the radio.
    """

    wants_load = True

    def __init__(self, settings: RrcSettings, step_s: float = STEP_S) -> None:
        self._settings = settings
        self._steps = Steps(step_s)
        self._cycles = Steps(settings.drx_cycle_s)
        self._mode = IDLE
        self._now_s = 0.0
        self._traffic_s = 0.0
        self._awake_s = 0.0
        self._on_s = 0.0
        self._carried = (0, 0)

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        carried = (load.down_packets, load.up_packets)
        sent = load.up_packets != self._carried[1] or load.up_backlog_bytes > 0
        moved = carried != self._carried
        waiting = load.down_backlog_bytes > 0 or load.up_backlog_bytes > 0
        if self._mode in (IDLE, INACTIVE) and waiting:
            is_known = self._mode == INACTIVE
            self._mode = PROMOTION
            settings = self._settings
            self._awake_s = t_s + (settings.resume_s if is_known else settings.promotion_s)
        if self._mode == PROMOTION and t_s >= self._awake_s:
            self._wake(t_s)
        if self._mode == CONNECTED:
            if moved or waiting:
                self._traffic_s = t_s
            elif t_s >= self._traffic_s + self._settings.inactivity_s:
                self._mode = DRX
                self._on_s = self._cycles.after(t_s)
        elif self._mode == DRX:
            reached = t_s >= self._on_s and load.down_backlog_bytes > 0
            if sent or reached:
                self._wake(t_s)
            elif t_s >= self._traffic_s + self._drx_ends_s and not waiting:
                self._mode = IDLE if self._settings.inactive_s is None else INACTIVE
            elif t_s >= self._on_s:
                self._on_s = self._cycles.after(t_s)
        if self._mode == INACTIVE and t_s >= self._traffic_s + self._settings.tail_s:
            self._mode = IDLE
        self._carried = carried
        self._now_s = t_s
        asleep = self._mode in (IDLE, INACTIVE, PROMOTION)
        return replace(
            state,
            hold_down=state.hold_down or self._mode != CONNECTED,
            hold_up=state.hold_up or asleep,
            rrc=self._mode,
        )

    def next_s(self) -> float:
        """Returns the time of the next transition, or of the next look at the load.

        While connected it looks twice per `inactivity_s`, so DRX begins at most half of it late.
        """
        if self._mode == PROMOTION:
            return self._awake_s
        if self._mode == CONNECTED:
            half_s = self._traffic_s + self._settings.inactivity_s / 2
            return half_s if half_s > self._now_s else self._traffic_s + self._settings.inactivity_s
        step_s = self._steps.after(self._now_s)
        if self._mode == IDLE:
            return step_s
        if self._mode == INACTIVE:
            return min(step_s, self._traffic_s + self._settings.tail_s)
        tail_s = self._traffic_s + self._drx_ends_s
        return min(step_s, self._on_s, tail_s if tail_s > self._now_s else step_s)

    @property
    def _drx_ends_s(self) -> float:
        """The time from the last packet to the end of DRX."""
        settings = self._settings
        return settings.tail_s if settings.inactive_s is None else settings.inactive_s

    def _wake(self, t_s: float) -> None:
        self._mode = CONNECTED
        self._traffic_s = t_s


def _check(radio: Mapping, settings: RrcSettings) -> None:
    if settings.inactive_s is not None and settings.inactive_s >= settings.tail_s:
        radio.fail(
            "inactive",
            f"{units.format_duration(settings.inactive_s)} is not before idle; "
            f"allowed: below {units.format_duration(settings.tail_s)}",
        )


TABLE: Final = Table(
    RrcSettings,
    (
        Row(
            "promotion",
            "promotion_s",
            duration(0.0, 10.0),
            "time that waking takes, from the first packet",
        ),
        Row(
            "inactivity",
            "inactivity_s",
            duration(1e-3, 10.0),
            "time without traffic until DRX, the saving mode",
        ),
        Row(
            "drx_cycle", "drx_cycle_s", duration(0.01, 10.24), "how often the radio listens in DRX"
        ),
        Row(
            "tail", "tail_s", duration(1e-3, 600.0), "time without traffic until the radio is idle"
        ),
        Row(
            "inactive",
            "inactive_s",
            duration(1e-3, 600.0),
            "time without traffic until RRC_INACTIVE, which 5G has; below `tail`",
            unset=None,
        ),
        Row(
            "resume",
            "resume_s",
            duration(0.0, 10.0),
            "time that waking from RRC_INACTIVE takes",
            unset=RESUME_S,
            default=units.format_duration(RESUME_S),
        ),
    ),
    _check,
    about="The radio sleeps between transfers, and needs time to wake.",
)


def _transitions(before: LinkState, after: LinkState) -> list[Happening]:
    return [] if before.rrc == after.rrc else [Happening("rrc", after.rrc)]


MODEL: Final = Model(
    RrcSettings,
    (Row("rrc", "rrc", TABLE, "the radio sleeps and wakes"),),
    layer=lambda settings, made: Rrc(settings, made.step_s),
    place=Stage.RADIO,
    summary=lambda settings: [("rrc", "RRC")],
    kinds=(LTE, FIVE_G),
    transitions=_transitions,
    happenings=("rrc",),
)
