"""Defines the state of a link at one instant, and what the link can carry then. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from linklab.core.bounded import Bps, Count, Dbm, Name, Packets, Ratio, Seconds
from linklab.core.impairments import NO_IMPAIRMENTS, Impairments
from linklab.core.limits import MIN_RATE_BPS

Direction = Literal["down", "up"]
"""Down is to the client, up is from the client."""

DIRECTIONS: Final[tuple[Direction, ...]] = ("down", "up")

CONNECTED = "connected"
"""The state `rrc` of a radio that is awake, and of a link without a modelled radio."""

_PACE: Final = ("down_rate_bps", "up_rate_bps", "hold_down", "hold_up", "pause", "carriers")
"""The fields that decide at which rates the queues send, or only name that."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """The state of a link at one instant, at the access node, where the radio is.

    Downlink packets reach the client as they leave the access node. Uplink packets reach the server
    `delay_s` after they leave it, whatever the radio does meanwhile.

    Attributes:
        up: the carrier. While it is down nothing passes, and the client sees that.
        down_rate_bps, up_rate_bps: count whole packets with the Ethernet header.
        delay_s: mean one-way delay, the same in both directions.
        jitter_s: standard deviation of the delay. Packets stay in order.
        loss_ratio: mean share of downlink packets lost.
        loss_burst_packets: mean length of a loss burst; 1 means independent losses.
        blackout: every packet is lost in both directions, and the client cannot see it.
        hold_down, hold_up: stop a queue without dropping its packets, like a sleeping LTE radio.
            The queue still fills.
        access_point: where the link is attached; "" if the scenario names none, or between two.
        lease: number of the client's address, from 0. A new address breaks open sockets.
        signal_dbm: received signal strength.
        carriers: number of aggregated LTE carriers.
        rrc: state of the LTE or 5G radio.
        queue_bytes: size of both directions' queues; UNSET if it is as the link's settings say.
        pause: what interrupts the link, such as "handover"; UNSET if nothing does.
        technology: "nr" or "lte" on a link with dual connectivity; UNSET on others.
        impair_down, impair_up: what else packets of a direction meet, besides all that.
    """

    up: bool
    down_rate_bps: Bps
    up_rate_bps: Bps
    delay_s: Seconds
    jitter_s: Seconds
    loss_ratio: Ratio
    loss_burst_packets: Packets = 1.0
    blackout: bool = False
    hold_down: bool = False
    hold_up: bool = False
    access_point: Name = ""
    lease: Count = 0
    signal_dbm: Dbm | None = None
    carriers: Count = 1
    rrc: Name = CONNECTED
    queue_bytes: Count | UnsetType = UNSET
    pause: Name | UnsetType = UNSET
    technology: Name | UnsetType = UNSET
    impair_down: Impairments | UnsetType = UNSET
    impair_up: Impairments | UnsetType = UNSET

    def scaled(self, down: float, up: float) -> LinkState:
        """Returns the state with its rates times these factors, at least the least rate."""
        return replace(
            self,
            down_rate_bps=max(MIN_RATE_BPS, round(self.down_rate_bps * down)),
            up_rate_bps=max(MIN_RATE_BPS, round(self.up_rate_bps * up)),
        )

    def impairments(self, direction: str) -> Impairments:
        """Returns the impairments of a direction, "down" or "up"."""
        found = self.impair_down if direction == "down" else self.impair_up
        return NO_IMPAIRMENTS if found is UNSET else found

    @property
    def rtt_s(self) -> float:
        """The mean round trip without a queue."""
        added_s = sum(self.impairments(direction).added_delay_s for direction in DIRECTIONS)
        return 2 * self.delay_s + added_s

    def _is_held(self, direction: str) -> bool:
        return self.hold_down if direction == "down" else self.hold_up

    def sent_bps(self, direction: str) -> int:
        """Returns the rate at which the queue of a direction sends, 0 while it is held."""
        if self._is_held(direction):
            return 0
        return self.down_rate_bps if direction == "down" else self.up_rate_bps

    def differs_only_in_pace(self, other: LinkState) -> bool:
        """Tells whether both states are equal but for the rates at which their queues send, and for
        what only names these."""
        return self == replace(other, **{name: getattr(self, name) for name in _PACE})

    def loses_all(self, direction: str) -> bool:
        """Tells whether the link itself loses all queued and arriving packets of a direction."""
        return not self.up or self._own_loss_ratio(direction) >= 1

    def is_out(self, direction: str) -> bool:
        """Tells whether packets of a direction are lost, or wait until the link changes by itself.

        A sleeping radio does not count: packets wake it, and the time for that is delay.
        """
        awake = self.rrc == CONNECTED
        lost = not self.up or self.lost_ratio(direction) >= 1
        return lost or (awake and self._is_held(direction))

    def passes(self, direction: str) -> bool:
        """Tells whether queued packets of a direction leave the queue at this instant."""
        return not self.is_out(direction) and not self._is_held(direction)

    def rate_bps(self, direction: str) -> int:
        """Returns the capacity of a direction, "down" or "up"; 0 while `is_out`."""
        if self.is_out(direction):
            return 0
        return self.down_rate_bps if direction == "down" else self.up_rate_bps

    def lost_ratio(self, direction: str) -> float:
        """Returns the mean share of packets lost in a direction, "down" or "up"."""
        own = self._own_loss_ratio(direction)
        other = self.impairments(direction).lost_ratio
        return own + other - own * other

    def _own_loss_ratio(self, direction: str) -> float:
        """Returns the share of packets that the link itself loses, before any impairment."""
        if self.blackout:
            return 1.0
        return self.loss_ratio if direction == "down" else 0.0
