"""Holds rate and queue of one direction of a link, with the kernel's queueing disciplines, over
netlink.

The access node's egress holds the rate and the queue: an HFSC class whose upper limit is the rate,
with a leaf of the link's queue discipline. The core node's egress holds delay, jitter and loss
(`delay.py`). They are never in one qdisc, because netem's limit counts delayed packets (Beshay et
al., MASCOTS 2015). They are never on an end host, whose TCP would see the queue (TCP small queues).

HFSC is used instead of HTB. Both charge a packet when it leaves. HTB counts the debt in seconds at
the rate of that moment (Linux sch_htb, htb_accnt_tokens), which is wrong after a change. At 1 and 3
Mbit/s alternating every 100 ms, HTB carries 0.975 of the capacity. After 10 kbit/s one packet
blocks its link for 1.2 s. HFSC restarts a class' curve with every change (sch_hfsc,
hfsc_change_usc) and forgets the debt. So linklab states it: the new curve begins with a pause as
long as the `Debt` takes at the new rate.

A class without packets has a plug that wakes the interface after a change. Otherwise HFSC would
first do what it planned by the old curve. While a link loses everything, the leaf is a plug without
room. Then no waiting packet leaves, and no packet that is still in netem gets in.
"""

from __future__ import annotations

import errno
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import hfsc, plug, tc
from linklab.lab.shaping.debt import Debt
from linklab.lab.shaping.hfsc import Curve
from linklab.lab.shaping.tc import Counters, ShapingError
from linklab.queues import registry

TIMER_SLACK_S = 0.005
"""The lateness of timers on a real clock that costs no rate when the rate changes. Without changes
no rate is lost. A radio's bursts last as long: one A-MPDU occupies the air for up to 5.484 ms (IEEE
802.11, aPPDUMaxTime)."""

_HELD = Curve(0, 2**32 - 1, 1)
"""No bytes for 71 minutes, the longest pause of a curve, and then a byte per second."""

_CATCH_UP_BYTES_PER_S = 2**31

_ROOT: Final = 0x10000
_CLASS, _IDLE_CLASS = 0x10001, 0x10002
_LEAVES: Final = (0x100000, 0x110000)
_WAKER: Final = 0x120000


class RateQueue:
    """Holds rate and queue of one direction, on an access node's interface.

    `channel` is a netlink socket in the node's namespace, `index` the interface there. `discipline`
    has the settings of the queue discipline. `slack_s` is the lateness of timers that costs no
    rate. A held queue sends nothing, and drops only what exceeds its size. A shut queue loses its
    content and everything that arrives.
    """

    def __init__(
        self,
        channel: Channel,
        index: int,
        rate_bps: int,
        queue_bytes: int,
        discipline: Any = registry.DEFAULT,
        slack_s: float = 0.0,
    ) -> None:
        self._channel = channel
        self._index = index
        self._get = tc.get_qdisc(index, _ROOT)
        self._debt = Debt(slack_s)
        self._pauses = False
        self._settings, self._discipline = discipline, registry.of_settings(discipline)
        self._own_bytes = self._queue_bytes = queue_bytes
        self._leaf, self._other_leaf = _LEAVES
        self._dropped_packets, self._lost_packets = 0, 0
        self._own_counters: Counter[str] = Counter()
        self.rate_bps = rate_bps
        self.is_held = False
        self.is_shut = False
        channel.request(hfsc.add(index, _ROOT, _CLASS & 0xFFFF))
        for one in (_CLASS, _IDLE_CLASS):
            channel.request(hfsc.put_class(index, one, _ROOT, self._steady, new=True))
        channel.request(tc.put_qdisc(index, _WAKER, _IDLE_CLASS, plug.NAME, plug.without_room()))
        self._put_discipline()
        self._debt.pay(time.monotonic_ns(), 0, is_backlogged=False)
        self._debt.go_on(rate_bps)

    @property
    def _steady(self) -> Curve:
        return Curve(0, 0, self.rate_bps // 8)

    @property
    def _options(self) -> bytes:
        return self._discipline.options(self._settings, self._queue_bytes)

    def _put_discipline(self) -> None:
        options = self._discipline.once(self._settings) + self._options
        self._put_leaf(self._discipline.kind, options)

    def _put_leaf(self, kind: str, options: bytes) -> None:
        """Replaces the leaf by an empty one."""
        self._leaf, self._other_leaf = self._other_leaf, self._leaf
        try:
            self._channel.request(tc.put_qdisc(self._index, self._leaf, _CLASS, kind, options))
        except NetlinkError as error:
            if error.errno != errno.ENOENT:
                raise
            raise ShapingError(
                f"this kernel lacks the queue discipline {kind}; the guest's kernel has it "
                "(--place guest)"
            ) from error

    def _wake(self) -> None:
        """Makes the interface check its queue."""
        self._channel.request(plug.wake(self._index, _WAKER, _IDLE_CLASS))

    def resize(self, queue_bytes: int | None) -> None:
        """Changes the queue's size, None to its first one. What is in it stays."""
        wanted = self._own_bytes if queue_bytes is None else queue_bytes
        if wanted == self._queue_bytes:
            return
        self._queue_bytes = wanted
        if not self.is_shut:
            kind = self._discipline.kind
            self._channel.request(
                tc.change_qdisc(self._index, self._leaf, _CLASS, kind, self._options)
            )

    def set(self, rate_bps: int, *, is_held: bool, is_shut: bool = False) -> None:
        """Changes the rate at once. The queue keeps its content unless it is shut. Equal values
        change nothing.

        The caller has to call `settle` from time to time afterwards.
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
            self._wake()

    def _shut(self) -> None:
        self._dropped_packets = self.counters().dropped_packets
        self._own_counters.update(self._counted_by_leaf())
        self.is_shut = True
        self._put_leaf(plug.NAME, plug.without_room())

    def _open(self) -> None:
        self._lost_packets = self.counters().lost_packets
        self.is_shut = False
        self._put_discipline()

    def _curve(self) -> Curve:
        debt_bytes = self._debt.bytes
        if debt_bytes > 0:
            return Curve(0, math.ceil(debt_bytes * 8e6 / self.rate_bps), self.rate_bps // 8)
        if debt_bytes < 0:
            catch_up_us = math.ceil(-debt_bytes * 1e6 / _CATCH_UP_BYTES_PER_S)
            return Curve(round(-debt_bytes * 1e6 / catch_up_us), catch_up_us, self.rate_bps // 8)
        return self._steady

    def _begin(self, curve: Curve) -> None:
        self._channel.request(hfsc.put_class(self._index, _CLASS, _ROOT, curve))
        self._pauses = curve.first_us > 0 and not self.is_held

    def settle(self) -> None:
        """Removes the pause of the last change from the curve once the queue is empty.

        HFSC would repeat it before the first packet after every idle time (rtsc_min).
        """
        if self._pauses and self.counters().queue_packets == 0:
            self._begin(self._steady)

    def counters(self) -> Counters:
        """Returns the queue's counters."""
        counted = tc.counters(self._channel.request(self._get))
        dropped = (
            self._dropped_packets if self.is_shut else counted.dropped_packets - self._lost_packets
        )
        return replace(
            counted, dropped_packets=dropped, lost_packets=counted.dropped_packets - dropped
        )

    def own_counters(self) -> Mapping[str, int]:
        """Returns the counters that only this queue discipline has, by name."""
        counted = Counter(self._own_counters)
        counted.update(self._counted_by_leaf())
        return counted

    def sojourns(self) -> list[list[int]] | None:
        """Returns how many packets waited how long, as `hfsc.sojourns`."""
        return hfsc.sojourns(self._channel.request(tc.get_class(self._index, _CLASS)))

    def _counted_by_leaf(self) -> Mapping[str, int]:
        if self._discipline.counters is None or self.is_shut:
            return {}
        answer = self._channel.request(tc.get_qdisc(self._index, self._leaf))
        return self._discipline.counters(tc.leaf(answer))
