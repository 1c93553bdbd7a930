"""Converts burst losses between ratio and burst length, and netem's Gilbert model. Pure.

A Markov chain with the states good and bad takes one step per packet. With h = 0 and 1-k = 0, the
usual form of Gilbert's model, every packet in the bad state is lost and none in the good state. p is
the probability of leaving good, r that of leaving bad. Then the share of packets lost is p / (p + r),
and a burst has 1 / r packets on average (tc-netem(8) `gemodel`; Hasslinger).
"""

from __future__ import annotations

from typing import NamedTuple

from linklab.schema.mapping import Mapping


class Losses(NamedTuple):
    """The mean share of packets lost, and the mean number lost in a row (at least 1)."""

    ratio: float
    burst_packets: float


class Gemodel(NamedTuple):
    """Probabilities per packet of leaving the good and the bad state; netem's 1-h is 1, its 1-k 0."""

    p: float
    r: float


def max_ratio(burst_packets: float) -> float:
    """Returns the largest possible loss ratio with bursts of this mean length: b / (b + 1).

    At least one packet passes between two bursts. Otherwise they were one burst.
    """
    return burst_packets / (burst_packets + 1)


def gemodel(loss_ratio: float, burst_packets: float) -> Gemodel:
    """Returns netem's parameters for a mean loss ratio and a mean burst length in packets.

    Raises ValueError for a ratio outside 0 to `max_ratio`. A burst of 1 differs from independent
    losses: two packets in a row are never lost.
    """
    limit = max_ratio(burst_packets)
    if not 0 <= loss_ratio <= limit * (1 + 1e-9):  # The result of `combined` may be rounded up.
        raise ValueError(
            f"a loss of {loss_ratio:.6g} with bursts of {burst_packets:g} packets; "
            f"allowed: 0 to {limit:.6g}, else there is no packet between two bursts"
        )
    r = 1 / burst_packets
    return Gemodel(min(loss_ratio * r / (1 - loss_ratio), 1.0), r)


def bursts_of(loss_ratio: float, burst_packets: float) -> Gemodel | None:
    """Returns netem's parameters, None if losses are independent or everything is lost."""
    if 0 < loss_ratio < 1 and burst_packets > 1:
        return gemodel(loss_ratio, burst_packets)
    return None


def combined(first: Losses, second: Losses) -> Losses:
    """Returns the losses of two independent lossy links in series.

    Rare bursts seldom coincide, so their number is the sum of both.
    """
    ratio = 1 - (1 - first.ratio) * (1 - second.ratio)
    if first.ratio == 0 or second.ratio == 0:
        return second if first.ratio == 0 else first
    bursts = first.ratio / first.burst_packets + second.ratio / second.burst_packets
    least = ratio / (1 - ratio) if ratio < 1 else first.burst_packets
    return Losses(ratio, max(ratio / bursts, least, 1.0))


def check_bursts(where: Mapping, key: str, loss_ratio: float, burst_packets: float) -> None:
    """Refuses a loss ratio that bursts of this length cannot reach."""
    if burst_packets > 1:
        try:
            gemodel(loss_ratio, burst_packets)
        except ValueError as error:
            where.fail(key if where.has(key) else None, str(error))
