"""What a link is at one instant, and what it can carry then. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from linklab.core.bounded import Bps, Count, Dbm, Name, Packets, Ratio, Seconds

Direction = Literal["down", "up"]
"""To the client, and from it."""

DIRECTIONS: Final[tuple[Direction, ...]] = ("down", "up")

CONNECTED = "connected"
"""`rrc` of a radio that is awake, and of a link without one."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """A link at one instant. Rates count whole packets with the Ethernet header.

    A state holds at the access node, where the radio is. Downlink packets reach the client as they
    leave it. Uplink packets have the delay still before them: they reach the server `delay_s` later,
    whatever the radio does meanwhile.

    `up` is the carrier: while it is down nothing passes in either direction and the client
    sees it. `delay_s` is one way, the mean, and the same both ways, `jitter_s` its
    standard deviation; packets stay in order. `loss_ratio` is the mean share of downlink packets lost, in bursts of
    `loss_burst_packets` on average (1 means independent losses). `blackout` loses every packet
    both ways without the client being told. `hold_down` and `hold_up` stop a queue without
    dropping what is in it, as a sleeping LTE radio does; the queue goes on to fill.

    What a phone can see of it: `access_point` is where the link is attached ("" where the
    scenario names none, or between two), `lease` counts the addresses that the client got from
    0 (another lease is another address: sockets die), `signal_dbm` the received signal
    strength, `carriers` the aggregated LTE carriers, `rrc` the radio's state.
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

    def _is_held(self, direction: str) -> bool:
        return self.hold_down if direction == "down" else self.hold_up

    def loses_all(self, direction: str) -> bool:
        """Whether every packet that waits in the queue or comes to it is lost, "down" or "up"."""
        return not self.up or self.lost_ratio(direction) >= 1

    def is_out(self, direction: str) -> bool:
        """Whether what comes is lost or waits until the link changes by itself.

        A radio that sleeps is not out: what comes wakes it. How long that takes is delay.
        """
        awake = self.rrc == CONNECTED
        return self.loses_all(direction) or (awake and self._is_held(direction))

    def passes(self, direction: str) -> bool:
        """Whether a packet that waits leaves the queue at this instant."""
        return not self.is_out(direction) and not self._is_held(direction)

    def rate_bps(self, direction: str) -> int:
        """What the link can carry now, "down" or "up"; 0 while it is out."""
        if self.is_out(direction):
            return 0
        return self.down_rate_bps if direction == "down" else self.up_rate_bps

    def lost_ratio(self, direction: str) -> float:
        """The mean share of packets that are lost on the way, "down" or "up"."""
        if self.blackout:
            return 1.0
        return self.loss_ratio if direction == "down" else 0.0
