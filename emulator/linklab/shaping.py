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
one packet through per interval; the debt never exceeds `MAX_DEBT_S`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyroute2 import IPRoute, NetlinkError

from linklab import netem

FRAME_BYTES = 1514
"""A full frame as the qdiscs count it: 1500 bytes of IP and the Ethernet header."""

MAX_DEBT_S = 0.02
"""The longest time by which a change to a higher rate may come late."""

MIN_HTB_RATE_BPS = int(FRAME_BYTES * 8 / MAX_DEBT_S)

BURST_BYTES = 1600
"""HTB's bucket: about one frame, so that the link never sends faster than its rate."""

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

netem.install()


class ShapingError(RuntimeError):
    """The kernel took a setting otherwise than it was given."""


@dataclass(frozen=True)
class QueueStatistics:
    """What a qdisc has counted since the lab began."""

    sent_bytes: int
    sent_packets: int
    dropped_packets: int
    queue_bytes: int
    queue_packets: int


def _statistics(netlink: IPRoute, index: int, handle: int) -> QueueStatistics:
    for message in netlink.get_qdiscs(index=index):
        if message["handle"] == handle:
            stats = message.get_attr("TCA_STATS2")
            basic = stats.get_attr("TCA_STATS_BASIC")
            queue = stats.get_attr("TCA_STATS_QUEUE")
            return QueueStatistics(
                sent_bytes=basic["bytes"],
                sent_packets=basic["packets"],
                dropped_packets=queue["drops"],
                queue_bytes=queue["backlog"],
                queue_packets=queue["qlen"],
            )
    raise ShapingError(f"interface {index} has no qdisc {handle:#x}")


class RateQueue:
    """Rate and drop-tail queue of one direction, on an access node's interface.

    `netlink` is a socket in the node's namespace, `index` the interface there.
    """

    def __init__(self, netlink: IPRoute, index: int, rate_bps: int, queue_bytes: int) -> None:
        self._netlink = netlink
        self._index = index
        self._closed = True
        self.changes = 0
        netlink.tc("add", "htb", index, handle=_ROOT, default=_CLASS & 0xFFFF)
        self._class("add-class", rate_bps)
        netlink.tc(
            "add", "plug", index, handle=_LEAF, parent=_CLASS,
            action="TCQ_PLUG_LIMIT", limit=queue_bytes,
        )  # fmt: skip
        if rate_bps >= MIN_HTB_RATE_BPS:
            self.open_gate()

    def _class(self, command: str, rate_bps: int) -> None:
        rate_bytes = max(rate_bps, MIN_HTB_RATE_BPS) // 8
        burst = 1 if rate_bps < MIN_HTB_RATE_BPS else BURST_BYTES
        self._netlink.tc(
            command, "htb", self._index, handle=_CLASS, parent=_ROOT,
            rate=rate_bytes, ceil=rate_bytes, burst=burst, cburst=burst,
            quantum=FRAME_BYTES, prio=0,
        )  # fmt: skip
        self.rate_bps = rate_bps

    def _gate(self, action: str) -> None:
        self._netlink.tc("change", "plug", self._index, handle=_LEAF, parent=_CLASS, action=action)

    @property
    def gate_period_s(self) -> float | None:
        """Seconds from one frame to the next where the gate has to be worked, else None."""
        if self.rate_bps >= MIN_HTB_RATE_BPS:
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
        self._class("change-class", rate_bps)
        if rate_bps >= MIN_HTB_RATE_BPS:
            self.open_gate()

    def open_gate(self) -> None:
        """Packets flow at the class' rate."""
        if self._closed:
            self._closed = False
            self._gate("TCQ_PLUG_RELEASE_INDEFINITE")

    def close_gate(self) -> None:
        """Nothing leaves; the queue fills and then drops."""
        if not self._closed:
            self._closed = True
            self._gate("TCQ_PLUG_BUFFER")

    def statistics(self) -> QueueStatistics:
        """Counters of the queue."""
        return _statistics(self._netlink, self._index, _LEAF)


class Delay:
    """Delay, jitter and loss of one direction, on a core node's interface."""

    def __init__(
        self,
        netlink: IPRoute,
        index: int,
        delay_s: float,
        jitter_s: float,
        loss_ratio: float,
        seed: int,
    ) -> None:
        self._netlink = netlink
        self._index = index
        self._seed = seed
        self._send("add", delay_s, jitter_s, loss_ratio)
        self._check_seed()

    def set(self, delay_s: float, jitter_s: float, loss_ratio: float) -> None:
        """Changes all three for packets that come from now on (one-way, seconds)."""
        # A seed starts netem's randomness anew (sch_netem, netem_change), and older kernels
        # draw one of their own where none is given: the same one each time would strike the
        # same packets after every change.
        self._seed = (self._seed + _SEED_STEP) % 2**64
        self._send("change", delay_s, jitter_s, loss_ratio)

    def _send(self, command: str, delay_s: float, jitter_s: float, loss_ratio: float) -> None:
        self._netlink.tc(
            command, "netem", self._index, handle=_ROOT, limit=NETEM_LIMIT_PACKETS,
            loss=loss_ratio * 100, byte_rate=IN_ORDER_RATE_BYTES_PER_S,
            latency_ns=round(delay_s * 1e9), jitter_ns=round(jitter_s * 1e9), seed=self._seed,
        )  # fmt: skip

    def _check_seed(self) -> None:
        for message in self._netlink.get_qdiscs(index=self._index):
            if message["handle"] == _ROOT:
                seed = message.get_attr("TCA_OPTIONS").get_attr("TCA_NETEM_PRNG_SEED")
                if seed == self._seed:
                    return
                raise ShapingError(
                    f"netem kept seed {seed} instead of {self._seed}: "
                    "runs would not repeat (a kernel of 6.6 or later is needed)"
                )
        raise ShapingError(f"interface {self._index} has no netem")

    def statistics(self) -> QueueStatistics:
        """Counters of netem; its drops are the seeded losses."""
        return _statistics(self._netlink, self._index, _ROOT)


def probe() -> None:
    """Builds all qdiscs of a lab on the loopback of this namespace; raises what refuses."""
    with IPRoute() as netlink:
        netlink.link("set", index=1, state="up")
        RateQueue(netlink, 1, 10_000_000, 100_000)
        netlink.tc("del", "htb", 1, handle=_ROOT)
        Delay(netlink, 1, 0.01, 0.001, 0.01, 1)


if __name__ == "__main__":
    try:
        probe()
    except NetlinkError as error:
        sys.exit(f"the kernel lacks a qdisc of tc-htb, sch_plug or tc-netem ({error})")
    except (OSError, ShapingError) as error:
        sys.exit(f"{error}")
