"""Sets delay, jitter and loss of one direction of a link by netem."""

from __future__ import annotations

from linklab.lab.kernel.netlink import Channel
from linklab.lab.shaping import netem, tc
from linklab.lab.shaping.netem import Settings
from linklab.lab.shaping.tc import Counters


def transit(
    delay_s: float, jitter_s: float = 0.0, loss_ratio: float = 0.0, loss_burst_packets: float = 1.0
) -> Settings:
    """Returns what packets meet besides the bottleneck: one-way delay, jitter, losses.

    `delay_s` is the mean, `jitter_s` the standard deviation, at most the mean.

    netem's own jitter draws a delay for each packet. To stay in order, a packet that would arrive
    before another one arrives together with it. So close packets all get the longest delay. A delay
    of 20 ms with 10 ms of jitter became 20.3 ms on an idle link and 28.1 ms at 50 Mbit/s, where the
    deviation was 1 ms. Here packets wait, after the shortest delay, for the next of random moments.
    These have exponentially distributed distances, so the wait has that distribution too, whenever
    a packet arrives. Mean and deviation do not depend on the load.
    """
    return Settings(
        delay_s - jitter_s,
        slot_s=jitter_s,
        loss_ratio=loss_ratio,
        loss_burst_packets=loss_burst_packets,
    )


class Netem:
    """netem as the root qdisc of an interface, with random numbers of a seed. Raises ShapingError if
    the kernel ignores the seed."""

    def __init__(self, channel: Channel, index: int, settings: Settings, seed: int) -> None:
        self._channel, self._index = channel, index
        self._settings, self._seed = settings, seed
        self._get = tc.get_qdisc(index, tc.ROOT)
        channel.request(netem.put(index, settings, seed, new=True))
        netem.check_seed(channel.request(self._get), seed)

    def remove(self) -> None:
        """Removes the qdisc. What it holds is lost."""
        self._channel.request(tc.delete(self._index, tc.ROOT))

    def set(self, settings: Settings) -> None:
        """Changes what packets meet from now on. Equal settings change nothing."""
        if settings != self._settings:
            self.put(settings)

    def put(self, settings: Settings) -> None:
        """Sends settings, with other random numbers."""
        self._settings, self._seed = settings, netem.next_seed(self._seed)
        self._channel.request(netem.put(self._index, settings, self._seed))

    def counters(self) -> Counters:
        """Returns netem's counters. Its drops are the seeded losses."""
        return tc.counters(self._channel.request(self._get))
