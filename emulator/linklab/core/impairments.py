"""Defines what a path does to packets of one direction, besides rate, queue and delay. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from msgspec import UNSET, UnsetType

from linklab.core.bounded import Bps, Bytes, Count, Name, Packets, Ratio, Seconds

NORMAL = "normal"
"""The default distribution of delays."""


@dataclass(frozen=True, slots=True)
class Impairments:
    """The impairments of one direction. UNSET is no impairment in a link's state, and no change in an
    event.

    Attributes:
        loss_ratio: mean share of packets lost, besides the link's own losses.
        loss_burst_packets: mean length of a loss burst; 1 means independent losses.
        delay_s: mean delay, besides the link's own delay.
        jitter_s: standard deviation of that delay.
        distribution: the name of the delay's distribution.
        in_order: a packet waits for the packets before it. Otherwise each has its own delay.
        reorder_ratio: share of packets without the delay, which overtake others.
        duplicate_ratio: share of packets that arrive twice.
        corrupt_ratio: share of packets with one wrong bit.
        mtu_bytes: size of the largest IP packet that passes.
        black_hole: larger packets vanish, and nobody tells their sender.
        police_bps: rate of a policer, which drops what exceeds it; 0 is none.
        police_burst_bytes: size of the policer's bucket, which is full at first.
        bleach_ecn: the ECN field becomes 0.
        nat_udp_s, nat_tcp_s: idle times after which a NAT forgets; UNSET both is no NAT.
        reset_after_s, reset_bytes, close_bytes: a TCP connection is reset after a time or after bytes
            that passed in this direction, or ends after such bytes; 0 is none.
        slice_bytes, slice_pause_s: the largest piece in which a connection's data passes, and the
            time between pieces; 0 is none.
        fault_port: the server's port whose connections have these faults; 0 is all.
    """

    loss_ratio: Ratio | UnsetType = UNSET
    loss_burst_packets: Packets | UnsetType = UNSET
    delay_s: Seconds | UnsetType = UNSET
    jitter_s: Seconds | UnsetType = UNSET
    distribution: Name | UnsetType = UNSET
    in_order: bool | UnsetType = UNSET
    reorder_ratio: Ratio | UnsetType = UNSET
    duplicate_ratio: Ratio | UnsetType = UNSET
    corrupt_ratio: Ratio | UnsetType = UNSET
    mtu_bytes: Bytes | UnsetType = UNSET
    black_hole: bool | UnsetType = UNSET
    police_bps: Bps | UnsetType = UNSET
    police_burst_bytes: Bytes | UnsetType = UNSET
    bleach_ecn: bool | UnsetType = UNSET
    nat_udp_s: Seconds | UnsetType = UNSET
    nat_tcp_s: Seconds | UnsetType = UNSET
    reset_after_s: Seconds | UnsetType = UNSET
    reset_bytes: Bytes | UnsetType = UNSET
    close_bytes: Bytes | UnsetType = UNSET
    slice_bytes: Bytes | UnsetType = UNSET
    slice_pause_s: Seconds | UnsetType = UNSET
    fault_port: Count | UnsetType = UNSET

    @property
    def lost_ratio(self) -> float:
        """The share of packets lost, 0 if none are."""
        return self.loss_ratio or 0.0

    @property
    def breaks_connections(self) -> bool:
        """Whether TCP connections have faults."""
        return bool(self.reset_after_s or self.reset_bytes or self.close_bytes or self.slice_bytes)

    @property
    def added_delay_s(self) -> float:
        """The mean delay, 0 if there is none."""
        return self.delay_s or 0.0

    def changed(self, by: Impairments | UnsetType) -> Impairments:
        """Returns these impairments with the values that `by` sets."""
        if by is UNSET:
            return self
        values = (getattr(by, field.name) for field in fields(self))
        return Impairments(
            *(
                getattr(self, field.name) if value is UNSET else value
                for field, value in zip(fields(self), values, strict=True)
            )
        )


NO_IMPAIRMENTS: Final = Impairments()
