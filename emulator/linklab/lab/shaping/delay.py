"""Sets delay, jitter and loss of one direction of a link by netem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linklab.lab.kernel.netlink import Channel
from linklab.lab.shaping import netem, tc
from linklab.lab.shaping.tc import Counters
from linklab.models.loss import bursts_of

NETEM_LIMIT_PACKETS = 1_000_000
"""The most delayed packets that netem holds. It is large, because the leaf limits the queue."""

IN_ORDER_RATE_BYTES_PER_S = 2**32 - 1
"""netem keeps packets in order if a rate is set (sch_netem, netem_enqueue), as Wi-Fi and LTE do.
This rate is too high to shape."""

_ROOT: Final = 0x10000


@dataclass(frozen=True, slots=True)
class Transit:
    """Describes what packets meet besides the bottleneck: one-way delay, jitter, losses.

    `delay_s` is the mean, `jitter_s` the standard deviation, at most the mean. Losses have a mean
    ratio and come in bursts of a mean length in packets. A length of 1 means independent losses.
    """

    delay_s: float
    jitter_s: float
    loss_ratio: float = 0.0
    loss_burst_packets: float = 1.0


class Delay:
    """Applies delay, jitter and loss of one direction, on a core node's interface.

    netem's own jitter draws a delay for each packet. To stay in order, a packet that would arrive
    before another one arrives together with it. So close packets all get the longest delay. A delay
    of 20 ms with 10 ms of jitter became 20.3 ms on an idle link and 28.1 ms at 50 Mbit/s, where the
    deviation was 1 ms. Here packets wait, after the shortest delay, for the next of random moments.
    These have exponentially distributed distances, so the wait has that distribution too, whenever
    a packet arrives. Mean and deviation do not depend on the load.
    """

    def __init__(self, channel: Channel, index: int, transit: Transit, seed: int) -> None:
        self._channel = channel
        self._index = index
        self._seed = seed
        self._get = tc.get_qdisc(index, _ROOT)
        self._has_slots = False
        self._send(transit, new=True)
        netem.check_seed(channel.request(self._get), seed)
        self.transit = transit

    def remove(self) -> None:
        """Removes the qdisc. What it holds is lost."""
        self._channel.request(tc.delete(self._index, _ROOT))

    def set(self, transit: Transit) -> None:
        """Changes all values for packets from now on. Equal values change nothing."""
        if transit == self.transit:
            return
        self._seed = netem.next_seed(self._seed)
        self._send(transit)
        self.transit = transit

    def _send(self, transit: Transit, *, new: bool = False) -> None:
        self._has_slots = self._has_slots or transit.jitter_s > 0
        self._channel.request(
            netem.put(
                self._index,
                _ROOT,
                limit_packets=NETEM_LIMIT_PACKETS,
                delay_s=transit.delay_s - transit.jitter_s,
                slot_s=transit.jitter_s if self._has_slots else None,
                loss_ratio=transit.loss_ratio,
                bursts=bursts_of(transit.loss_ratio, transit.loss_burst_packets),
                rate_bytes_per_s=IN_ORDER_RATE_BYTES_PER_S,
                seed=self._seed,
                new=new,
            )
        )

    def counters(self) -> Counters:
        """Returns netem's counters. Its drops are the seeded losses."""
        return tc.counters(self._channel.request(self._get))
