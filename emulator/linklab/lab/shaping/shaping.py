"""Shaping one direction of a link with the kernel's queueing disciplines, over netlink.

The access node's egress holds the rate and the queue: an HFSC class whose upper limit is the rate,
with a byte-limited drop-tail leaf. The core node's egress holds delay, jitter and loss:
netem. They are never in one qdisc, because netem's limit counts delayed packets
(Beshay et al., MASCOTS 2015), and never on an end host, whose TCP would see
the queue (TCP small queues).

HFSC and not HTB: both charge a packet when it leaves, but HTB counts what is owed for it in
seconds at the rate of that moment (Linux sch_htb, htb_accnt_tokens). After a change it owes too
much or too little: at 1 and 3 Mbit/s alternating every 100 ms it carries .975 of the capacity, and
after 10 kbit/s one packet holds the link for 1.2 s. HFSC begins a class' curve anew with every
change (sch_hfsc, hfsc_change_usc) and forgets what was owed, so that we can say it: the new
curve begins with a pause as long as the `Debt` takes at the new rate.

The leaf is `plug`, always open: bfifo with a message that has the interface look at its queue
again. Without it what HFSC planned by the old curve would come first. While a link loses everything
the leaf is another one without room: so nothing leaves that waited, and nothing that is still under
way through netem gets in.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, replace

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import tc
from linklab.lab.shaping.debt import Debt
from linklab.lab.shaping.tc import Counters, Curve
from linklab.models.loss import gemodel

TIMER_SLACK_S = 0.005
"""How late a timer may come on a real clock without costing rate where the rate changes; without a
change nothing is lost. A radio's bursts last as long: one A-MPDU takes the air for up to 5.484 ms
(IEEE 802.11, aPPDUMaxTime)."""

NETEM_LIMIT_PACKETS = 1_000_000
"""Delayed packets that netem may hold: out of the way, the queue is the leaf's."""

IN_ORDER_RATE_BYTES_PER_S = 2**32 - 1
"""netem keeps packets in order where a rate is set (sch_netem, netem_enqueue), as
Wi-Fi and LTE do; this rate is too high to shape."""

_HELD = Curve(0, 2**32 - 1, 1)
"""Nothing for 71 minutes, the longest pause of a curve, and then a byte per second."""

_CATCH_UP_BYTES_PER_S = 2**31

_SEED_STEP = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: spreads consecutive seeds (Steele et al., SplitMix)."""

_ROOT = 0x10000
_CLASS = 0x10001
_LEAVES = (0x100000, 0x110000)


class ShapingError(RuntimeError):
    """The kernel took a setting otherwise than it was given."""


class RateQueue:
    """Rate and drop-tail queue of one direction, on an access node's interface.

    `channel` is a tc socket in the node's namespace, `index` the interface there; `slack_s` is
    how late a timer may come without costing rate. A held queue sends nothing and drops nothing
    that it has room for. A shut queue loses what is in it and what comes.
    """

    def __init__(
        self, channel: Channel, index: int, rate_bps: int, queue_bytes: int, slack_s: float = 0.0
    ) -> None:
        self._channel = channel
        self._index = index
        self._get = tc.get_qdisc(index, _ROOT)
        self._debt = Debt(slack_s)
        self._pauses = False
        self._queue_bytes = queue_bytes
        self._leaf, self._other_leaf = _LEAVES
        self._dropped_packets, self._lost_packets = 0, 0
        self.rate_bps = rate_bps
        self.is_held = False
        self.is_shut = False
        channel.request(tc.add_hfsc(index, _ROOT, _CLASS & 0xFFFF))
        channel.request(tc.hfsc_class(index, _CLASS, _ROOT, self._steady, new=True))
        self._put_leaf(queue_bytes)
        self._debt.pay(time.monotonic_ns(), 0, is_backlogged=False)
        self._debt.go_on(rate_bps)

    @property
    def _steady(self) -> Curve:
        return Curve(0, 0, self.rate_bps // 8)

    def _put_leaf(self, limit_bytes: int) -> None:
        """An empty leaf with so much room, in the place of what is there."""
        self._channel.request(tc.put_plug(self._index, self._leaf, _CLASS, limit_bytes))
        self._look()

    def _look(self) -> None:
        """Has the interface look at its queue."""
        self._channel.request(tc.open_plug(self._index, self._leaf, _CLASS))

    def set(self, rate_bps: int, *, is_held: bool, is_shut: bool = False) -> None:
        """Changes the rate at once; the queue and what is in it stay, unless it is shut. The same
        again does nothing.

        Somebody has to call `settle` from time to time afterwards.
        """
        if (rate_bps, is_held, is_shut) == (self.rate_bps, self.is_held, self.is_shut):
            return
        if is_shut != self.is_shut:
            if is_shut:
                self._shut()
            else:
                self._open()
        self.rate_bps, self.is_held = rate_bps, is_held
        counters = self.counters()
        is_backlogged = counters.queue_packets > 0
        self._debt.pay(time.monotonic_ns(), counters.sent_bytes, is_backlogged=is_backlogged)
        self._debt.go_on(0 if is_held else rate_bps)
        self._begin(_HELD if is_held else self._curve())
        if is_backlogged:
            self._look()

    def _shut(self) -> None:
        self._dropped_packets = self.counters().dropped_packets
        self.is_shut = True
        self._leaf, self._other_leaf = self._other_leaf, self._leaf
        self._put_leaf(0)

    def _open(self) -> None:
        self._lost_packets = self.counters().lost_packets
        self.is_shut = False
        self._channel.request(tc.limit_plug(self._index, self._leaf, _CLASS, self._queue_bytes))

    def _curve(self) -> Curve:
        debt_bytes = self._debt.bytes
        if debt_bytes > 0:
            return Curve(0, math.ceil(debt_bytes * 8e6 / self.rate_bps), self.rate_bps // 8)
        if debt_bytes < 0:
            catch_up_us = math.ceil(-debt_bytes * 1e6 / _CATCH_UP_BYTES_PER_S)
            return Curve(round(-debt_bytes * 1e6 / catch_up_us), catch_up_us, self.rate_bps // 8)
        return self._steady

    def _begin(self, curve: Curve) -> None:
        self._channel.request(tc.hfsc_class(self._index, _CLASS, _ROOT, curve))
        self._pauses = curve.first_us > 0 and not self.is_held

    def settle(self) -> None:
        """Takes the pause of the last change out of the curve once the queue is empty.

        HFSC would make it again before the first packet after every idle time (rtsc_min).
        """
        if self._pauses and self.counters().queue_packets == 0:
            self._begin(self._steady)

    def counters(self) -> Counters:
        """What the queue has counted."""
        counted = tc.counters(self._channel.request(self._get))
        dropped = (
            self._dropped_packets if self.is_shut else counted.dropped_packets - self._lost_packets
        )
        return replace(
            counted, dropped_packets=dropped, lost_packets=counted.dropped_packets - dropped
        )


@dataclass(frozen=True, slots=True)
class Transit:
    """What packets meet on their way to the bottleneck: one-way delay, jitter, losses.

    `delay_s` is the mean, `jitter_s`, which is at most that, the standard deviation.

    Losses have a mean and come in bursts of a mean length in packets; 1 is independent.
    """

    delay_s: float
    jitter_s: float
    loss_ratio: float = 0.0
    loss_burst_packets: float = 1.0


class Delay:
    """Delay, jitter and loss of one direction, on a core node's interface.

    Netem's own jitter draws a delay for each packet. In order, one that would come before another
    comes with it, so that close packets all have the longest delay: of 20 ms with 10 ms of jitter
    20.3 were left alone, 28.1 at 50 Mbit/s, where the deviation was 1 ms. So packets wait, after the
    shortest delay, for the next of random moments. Where these have exponential distances, the wait
    has that distribution too, whenever a packet comes: mean and deviation do not depend on the load.
    """

    def __init__(self, channel: Channel, index: int, transit: Transit, seed: int) -> None:
        self._channel = channel
        self._index = index
        self._seed = seed
        self._get = tc.get_qdisc(index, _ROOT)
        self._has_slots = False
        self._send(transit, new=True)
        kept = tc.netem_seed(channel.request(self._get))
        if kept != seed:
            raise ShapingError(
                f"netem kept seed {kept} instead of {seed}: "
                "runs would not repeat (a kernel of 6.6 or later is needed)"
            )
        self.transit = transit

    def set(self, transit: Transit) -> None:
        """Changes everything for packets that come from now on; the same again does nothing."""
        if transit == self.transit:
            return
        # A seed starts netem's randomness anew (sch_netem, netem_change), and older kernels
        # draw one of their own where none is given: the same one each time would strike the
        # same packets after every change.
        self._seed = (self._seed + _SEED_STEP) % 2**64
        self._send(transit)
        self.transit = transit

    def _send(self, transit: Transit, *, new: bool = False) -> None:
        self._has_slots = self._has_slots or transit.jitter_s > 0
        bursts = None
        if 0 < transit.loss_ratio < 1 and transit.loss_burst_packets > 1:
            bursts = gemodel(transit.loss_ratio, transit.loss_burst_packets)
        self._channel.request(
            tc.netem(
                self._index,
                _ROOT,
                limit_packets=NETEM_LIMIT_PACKETS,
                delay_s=transit.delay_s - transit.jitter_s,
                slot_s=transit.jitter_s if self._has_slots else None,
                loss_ratio=transit.loss_ratio,
                bursts=bursts,
                rate_bytes_per_s=IN_ORDER_RATE_BYTES_PER_S,
                seed=self._seed,
                new=new,
            )
        )

    def counters(self) -> Counters:
        """What netem has counted; its drops are the seeded losses."""
        return tc.counters(self._channel.request(self._get))


def probe() -> None:
    """Builds all qdiscs of a lab on the loopback of this namespace; raises what refuses."""
    channel = Channel()
    channel.request(rtnetlink.set_up(1, up=True))
    queue = RateQueue(channel, 1, 10_000_000, 100_000)
    queue.set(10_000_000, is_held=False, is_shut=True)
    queue.set(10_000_000, is_held=False)
    channel.request(tc.delete_root(1, _ROOT))
    Delay(channel, 1, Transit(0.01, 0.001, 0.01), 1)
    channel.close()


if __name__ == "__main__":
    try:
        probe()
    except NetlinkError as error:
        sys.exit(f"the kernel lacks a qdisc of tc-hfsc, sch_plug or tc-netem ({error.strerror})")
    except (OSError, ShapingError) as error:
        sys.exit(f"{error}")
