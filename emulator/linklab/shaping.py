"""Shaping one direction of a link with the kernel's queueing disciplines, over netlink.

The access node's egress holds the rate and the queue: an HTB class with a
byte-limited drop-tail leaf. The core node's egress holds delay, jitter and loss:
netem. They are never in one qdisc, because netem's limit counts delayed packets
(Jurgelionis et al., MASCOTS 2015), and never on an end host, whose TCP would see
the queue (TCP small queues).

The leaf is `plug`, which is bfifo with a gate. HTB charges each packet at the
rate of the moment, so at 10 kbit/s one packet leaves a debt of 1.2 s that holds
the link down long after the rate is up again (Linux sch_htb, htb_accnt_tokens).
Below `MIN_HTB_RATE_BPS` the class therefore stays at that rate and the gate lets
one packet through per interval; the debt never exceeds `MAX_DEBT_S`. A link that is
held, as a sleeping radio's, has its gate closed altogether.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyroute2 import IPRoute

from linklab import tc
from linklab.models.loss import gemodel
from linklab.tc import Channel, Counters, TcError

FRAME_BYTES = 1514
"""A full frame as the qdiscs count it: 1500 bytes of IP and the Ethernet header."""

MAX_DEBT_S = 0.02
"""The longest time by which a change to a higher rate may come late."""

MIN_HTB_RATE_BPS = int(FRAME_BYTES * 8 / MAX_DEBT_S)

BURST_BYTES = 1600
"""HTB's bucket: about one frame, so that the link never sends faster than its rate."""

TIMER_SLACK_S = 0.005
"""What the bucket holds besides on a real clock, at the link's rate. A timer that comes late loses
what the bucket cannot hold, and with one frame in it that begins at 60 µs at 12 Mbit/s. A radio's
bursts last as long: one A-MPDU takes the air for up to 5.484 ms (IEEE 802.11, aPPDUMaxTime)."""

GATE_OPEN_S = MAX_DEBT_S / 2
"""How long the gate opens for one frame: the next one would need `MAX_DEBT_S`."""

NETEM_LIMIT_PACKETS = 1_000_000
"""Delayed packets that netem may hold: out of the way, the queue is the leaf's."""

IN_ORDER_RATE_BYTES_PER_S = 2**32 - 1
"""netem keeps packets in order where a rate is set (sch_netem, netem_enqueue), as
Wi-Fi and LTE do; this rate is too high to shape."""

_SEED_STEP = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: spreads consecutive seeds (Steele et al., SplitMix)."""

_ROOT = 0x10000
_CLASS = 0x10001
_LEAF = 0x100000


class ShapingError(RuntimeError):
    """The kernel took a setting otherwise than it was given."""


class RateQueue:
    """Rate and drop-tail queue of one direction, on an access node's interface.

    `channel` is a tc socket in the node's namespace, `index` the interface there; `slack_s` is
    how late a timer may come without costing rate. `changes` counts what a worker of the gate has
    to know of: whoever works it looks anew when it moved.
    """

    def __init__(
        self, channel: Channel, index: int, rate_bps: int, queue_bytes: int, slack_s: float = 0.0
    ) -> None:
        self._channel = channel
        self._slack_s = slack_s
        self._index = index
        self._get = tc.get_qdisc(index, _LEAF)
        self._closed = True
        self._held = False
        self.changes = 0
        channel.request(tc.add_htb(index, _ROOT, _CLASS & 0xFFFF))
        self._set_class(rate_bps, new=True)
        channel.request(tc.add_plug(index, _LEAF, _CLASS, queue_bytes))
        self._rest()

    def _set_class(self, rate_bps: int, *, new: bool = False) -> None:
        slow = rate_bps < MIN_HTB_RATE_BPS
        burst_bytes = 1 if slow else BURST_BYTES + round(rate_bps / 8 * self._slack_s)
        self._channel.request(
            tc.htb_class(
                self._index, _CLASS, _ROOT, max(rate_bps, MIN_HTB_RATE_BPS) // 8,
                burst_bytes, FRAME_BYTES, new=new,
            )
        )  # fmt: skip
        self.rate_bps = rate_bps

    def _rest(self) -> None:
        """Puts the gate where it stays between two workings of it."""
        if self._held or self.rate_bps < MIN_HTB_RATE_BPS:
            self.close_gate()
        else:
            self.open_gate()

    @property
    def gate_period_s(self) -> float | None:
        """Seconds from one frame to the next where the gate has to be worked, else None."""
        if self._held or self.rate_bps >= MIN_HTB_RATE_BPS:
            return None
        return FRAME_BYTES * 8 / self.rate_bps

    def set_rate(self, rate_bps: int) -> None:
        """Changes the rate at once; the queue and what is in it stay.

        Where `gate_period_s` says so afterwards, somebody has to `open_gate` for
        `GATE_OPEN_S` once per period.
        """
        self.changes += 1
        if rate_bps < MIN_HTB_RATE_BPS:
            self.close_gate()
        self._set_class(rate_bps)
        self._rest()

    def set_held(self, held: bool) -> None:
        """Stops the queue without dropping what is in it, or lets it go on."""
        if held != self._held:
            self.changes += 1
            self._held = held
            self._rest()

    def open_gate(self) -> None:
        """Packets flow at the class' rate."""
        if self._closed:
            self._closed = False
            self._channel.request(tc.plug_gate(self._index, _LEAF, _CLASS, is_open=True))

    def close_gate(self) -> None:
        """Nothing leaves; the queue fills and then drops."""
        if not self._closed:
            self._closed = True
            self._channel.request(tc.plug_gate(self._index, _LEAF, _CLASS, is_open=False))

    def counters(self) -> Counters:
        """What the queue has counted."""
        return tc.counters(self._channel.request(self._get))


@dataclass(frozen=True, slots=True)
class Transit:
    """What packets meet on their way to the bottleneck: one-way delay, jitter, losses.

    Losses have a mean and come in bursts of a mean length in packets; 1 is independent.
    """

    delay_s: float
    jitter_s: float
    loss_ratio: float = 0.0
    loss_burst_packets: float = 1.0


class Delay:
    """Delay, jitter and loss of one direction, on a core node's interface."""

    def __init__(self, channel: Channel, index: int, transit: Transit, seed: int) -> None:
        self._channel = channel
        self._index = index
        self._seed = seed
        self._get = tc.get_qdisc(index, _ROOT)
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
        bursts = None
        if 0 < transit.loss_ratio < 1 and transit.loss_burst_packets > 1:
            bursts = gemodel(transit.loss_ratio, transit.loss_burst_packets)
        self._channel.request(
            tc.netem(
                self._index, _ROOT, limit_packets=NETEM_LIMIT_PACKETS,
                delay_s=transit.delay_s, jitter_s=transit.jitter_s,
                loss_ratio=transit.loss_ratio, bursts=bursts,
                rate_bytes_per_s=IN_ORDER_RATE_BYTES_PER_S, seed=self._seed, new=new,
            )
        )  # fmt: skip

    def counters(self) -> Counters:
        """What netem has counted; its drops are the seeded losses."""
        return tc.counters(self._channel.request(self._get))


def probe() -> None:
    """Builds all qdiscs of a lab on the loopback of this namespace; raises what refuses."""
    with IPRoute() as netlink:
        netlink.link("set", index=1, state="up")
        RateQueue(Channel(), 1, 10_000_000, 100_000)
        netlink.tc("del", "htb", 1, handle=_ROOT)
        Delay(Channel(), 1, Transit(0.01, 0.001, 0.01), 1)


if __name__ == "__main__":
    try:
        probe()
    except TcError as error:
        sys.exit(f"the kernel lacks a qdisc of tc-htb, sch_plug or tc-netem ({error.strerror})")
    except (OSError, ShapingError) as error:
        sys.exit(f"{error}")
