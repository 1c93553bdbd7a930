"""Shares Wi-Fi's air time between both directions of a link. Pure.

A packet takes air time for an access (waiting, backoff, preamble, acknowledgement) and for its bytes
at the PHY rate. TCP's acknowledgements are small, but each needs an access, too. Without them a
downlink is faster by the factor 1 + t_ack / (2 t_data) (super-aggregation, "Analysis of
offloading-ACK", equations 1 and 2). With frame aggregation many packets share one access.
"""

from __future__ import annotations

from dataclasses import dataclass

from linklab.core.frames import ETHERNET_BYTES, FRAME_BYTES
from linklab.models.layer import STEP_S, Load, Steps
from linklab.models.phy import Standard

HEADER_BYTES = 26 + 8 + 4 - ETHERNET_BYTES
"""802.11's overhead: 26 MAC with QoS, 8 LLC and SNAP, 4 checksum, minus Ethernet's header
(IEEE 802.11 9.2.3)."""


@dataclass(frozen=True, slots=True)
class AirCost:
    """The cost of an access to the channel.

    Attributes:
        access_s: air time of an access.
        aggregate_s: air time that a sender fills with frames after an access; 0 means one frame.
        efficiency: share of the time without retries, rate probing and beacons.
        up_access_s, up_rate_bps: the client's own values; None means those of the downlink.
    """

    access_s: float
    aggregate_s: float = 0.0
    efficiency: float = 1.0
    up_access_s: float | None = None
    up_rate_bps: float | None = None

    def down_packet_s(self, size_bytes: float, phy_bps: float) -> float:
        """Returns the air time of a downlink packet; its size includes the Ethernet header."""
        return self._packet_s(self.access_s, size_bytes, phy_bps)

    def up_packet_s(self, size_bytes: float, phy_bps: float) -> float:
        """Returns the air time of an uplink packet."""
        access_s = self.access_s if self.up_access_s is None else self.up_access_s
        rate_bps = phy_bps if self.up_rate_bps is None else min(phy_bps, self.up_rate_bps)
        return self._packet_s(access_s, size_bytes, rate_bps)

    def turn_s(self, phy_bps: float) -> float:
        """Returns the air time of one access of a sender with full packets."""
        return self._frames(phy_bps) * self.down_packet_s(FRAME_BYTES, phy_bps)

    def _frames(self, rate_bps: float) -> float:
        return max(1.0, self.aggregate_s * rate_bps / 8 / (FRAME_BYTES + HEADER_BYTES))

    def _packet_s(self, access_s: float, size_bytes: float, rate_bps: float) -> float:
        return (
            access_s / self._frames(rate_bps) + (size_bytes + HEADER_BYTES) * 8 / rate_bps
        ) / self.efficiency


ACCESS_G = AirCost(access_s=28e-6 + 67.5e-6 + 26e-6 + 10e-6 + 34e-6)
"""802.11g without 802.11b stations: DIFS, 7.5 slots of 9 µs on average, preamble with signal
extension, SIFS, acknowledgement at 24 Mbit/s (IEEE 802.11 17 and 18)."""

ACCESS_BG = AirCost(
    access_s=50e-6 + 150e-6 + 26e-6 + 10e-6 + 34e-6,
    up_access_s=50e-6 + 150e-6 + 192e-6 + 10e-6 + 248e-6,
    up_rate_bps=2e6,
)
"""802.11g with slots of 20 µs because 802.11b stations share the cell. The client sends its
acknowledgements at 2 Mbit/s with the long preamble.

Super-aggregation does not describe its 802.11g cell, but both of its figures fit these values. It
has 317 kbit/s of acknowledgements of 40 bytes; the model has 321. Without them it gains
11.27 Mbit/s; the model gains 11.7 (11.5 to 23.3 Mbit/s). With `ACCESS_G` the model gains 5.6 (23.9
to 29.5)."""

ACCESS_AGGREGATED = AirCost(
    access_s=43e-6 + 67.5e-6 + 40e-6 + 16e-6 + 32e-6, aggregate_s=4e-3, efficiency=0.79
)
"""802.11n and ac: like 802.11g, with the AIFS of best effort and a block acknowledgement for 4 ms of
frames, about what drivers use. With this efficiency TCP alone gets 65 to 70 % of the PHY rate
(assumption 2)."""

ACCESS: dict[Standard, AirCost] = {"g": ACCESS_G, "n": ACCESS_AGGREGATED, "ac": ACCESS_AGGREGATED}


@dataclass(frozen=True, slots=True)
class _Use:
    """The use by one direction in the last step: its share of the time, and a packet's air time."""

    share: float
    packet_s: float


class Air:
    """Shares the air between a link's two directions by their observed packets.

    Every step it converts the packets that left the queues into air time. Each direction may then
    use what the other one leaves. If both need more than there is, both shrink equally, but not below
    the share that equal access gives them (802.11's DCF).
    """

    def __init__(self, access: AirCost, step_s: float = STEP_S) -> None:
        self._access = access
        self._steps = Steps(step_s)
        self._seen_s = 0.0
        self._due_s = 0.0
        self._seen = Load()
        self._down: _Use | None = None
        self._up: _Use | None = None

    def observe(self, t_s: float, load: Load, phy_bps: float) -> None:
        """Counts the bytes sent since the step before at the rate `phy_bps`.

        Calls within a step do nothing.
        """
        if t_s < self._due_s:
            return
        passed_s = t_s - self._seen_s
        if passed_s > 0:
            access, seen = self._access, self._seen
            down = (load.down_packets - seen.down_packets, load.down_bytes - seen.down_bytes)
            up = (load.up_packets - seen.up_packets, load.up_bytes - seen.up_bytes)
            self._down = self._up = None
            if down[0] > 0 and phy_bps > 0:
                packet_s = access.down_packet_s(down[1] / down[0], phy_bps)
                self._down = _Use(down[0] * packet_s / passed_s, packet_s)
            if up[0] > 0 and phy_bps > 0:
                packet_s = access.up_packet_s(up[1] / up[0], phy_bps)
                self._up = _Use(up[0] * packet_s / passed_s, packet_s)
        self._seen_s, self._seen = t_s, load
        self._due_s = self._steps.after(t_s)

    def rates_bps(self, phy_bps: float, available: float) -> tuple[float, float]:
        """Returns the highest rates of down- and uplink, in bit/s of full packets with headers.

        `available` is the share of the time that other stations leave, above 0 to 1.
        """
        down_s = self._access.down_packet_s(FRAME_BYTES, phy_bps)
        up_s = self._access.up_packet_s(FRAME_BYTES, phy_bps)
        down = self._down or _Use(0.0, down_s)
        up = self._up or _Use(0.0, up_s)
        fits = min(1.0, available / max(down.share + up.share, available))
        down_share = max(
            available - up.share * fits, available * down.packet_s / (down.packet_s + up.packet_s)
        )
        up_share = max(
            available - down.share * fits, available * up.packet_s / (down.packet_s + up.packet_s)
        )
        return FRAME_BYTES * 8 * down_share / down_s, FRAME_BYTES * 8 * up_share / up_s

    def next_s(self) -> float:
        return self._due_s
