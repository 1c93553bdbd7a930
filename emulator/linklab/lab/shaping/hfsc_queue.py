"""Holds the rate of one direction with HFSC, on a kernel that lacks linklab's own qdisc: the host's.

The access node's egress has an HFSC class whose upper limit is the rate, with a leaf of the link's
queue discipline. A queue that never runs empty sends the integral of its rates. Other packets may
be early or late by up to a frame after each change of the rate, and an idle link delivers a frame
without its own transmission time (`the-lab.md` has the measured error).

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

import itertools
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from linklab.lab.kernel.netlink import Channel
from linklab.lab.shaping import hfsc, tc
from linklab.lab.shaping.debt import Debt
from linklab.lab.shaping.hfsc import Curve
from linklab.lab.shaping.leaf_queue import CLASS, FIRST_LEAF, LeafQueue
from linklab.lab.shaping.tc import ROOT, Counters

TIMER_SLACK_S = 0.005
"""The lateness of timers on a real clock that costs no rate when the rate changes. Without changes
no rate is lost. A radio's bursts last as long: one A-MPDU occupies the air for up to 5.484 ms (IEEE
802.11, aPPDUMaxTime)."""

_HELD = Curve(0, 2**32 - 1, 1)
"""No bytes for 71 minutes, the longest pause of a curve, and then a byte per second."""

_CATCH_UP_BYTES_PER_S = 2**31

_IDLE_CLASS: Final = 0x10002
_LEAVES: Final = (FIRST_LEAF, 0x110000)
_WAKER: Final = 0x120000


class HfscQueue:
    """A queue whose rate HFSC holds. `slack_s` is the lateness of timers that costs no rate."""

    shaper = "hfsc"

    def __init__(
        self, channel: Channel, index: int, rate_bps: int, leaf: LeafQueue, slack_s: float = 0.0
    ) -> None:
        self._channel = channel
        self._index = index
        self._leaf = leaf
        self._leaves = itertools.cycle(_LEAVES)
        self._get = tc.get_qdisc(index, ROOT)
        self._debt = Debt(slack_s)
        self._pauses = False
        self._dropped_packets, self._lost_packets = 0, 0
        self._own_counters: Counter[str] = Counter()
        self.rate_bps = rate_bps
        self.is_held = False
        self.is_shut = False
        channel.request(hfsc.add(index, ROOT, CLASS & 0xFFFF))
        for one in (CLASS, _IDLE_CLASS):
            channel.request(hfsc.put_class(index, one, ROOT, self._steady, new=True))
        channel.request(tc.put_qdisc(index, _WAKER, _IDLE_CLASS, hfsc.PLUG, hfsc.WITHOUT_ROOM))
        leaf.put(next(self._leaves))
        self._debt.pay(time.monotonic_ns(), 0, is_backlogged=False)
        self._debt.go_on(rate_bps)

    @property
    def _steady(self) -> Curve:
        return Curve(0, 0, self.rate_bps // 8)

    def resize(self, queue_bytes: int | None) -> None:
        self._leaf.resize(queue_bytes, is_there=not self.is_shut)

    def set(self, rate_bps: int, *, is_held: bool, is_shut: bool = False) -> None:
        """Changes the rate at once, as RateQueue.set. A pause remains until `counters` finds the
        queue empty."""
        if (rate_bps, is_held, is_shut) == (self.rate_bps, self.is_held, self.is_shut):
            return
        if is_shut != self.is_shut:
            if is_shut:
                self._shut()
            else:
                self._open()
        self.rate_bps, self.is_held = rate_bps, is_held
        counters = self._counters()
        is_backlogged = counters.queue_packets > 0
        self._debt.pay(time.monotonic_ns(), counters.sent_bytes, is_backlogged=is_backlogged)
        self._debt.go_on(0 if is_held else rate_bps)
        self._begin(_HELD if is_held else self._curve())
        if is_backlogged:
            # The interface checks its queue at once.
            self._channel.request(hfsc.wake(self._index, _WAKER, _IDLE_CLASS))

    def _shut(self) -> None:
        self._dropped_packets = self._counters().dropped_packets
        self._own_counters.update(self._leaf.own_counters())
        self.is_shut = True
        full = tc.put_qdisc(self._index, next(self._leaves), CLASS, hfsc.PLUG, hfsc.WITHOUT_ROOM)
        self._channel.request(full)

    def _open(self) -> None:
        self._lost_packets = self._counters().lost_packets
        self.is_shut = False
        self._leaf.put(next(self._leaves))

    def _curve(self) -> Curve:
        debt_bytes = self._debt.bytes
        if debt_bytes > 0:
            return Curve(0, math.ceil(debt_bytes * 8e6 / self.rate_bps), self.rate_bps // 8)
        if debt_bytes < 0:
            catch_up_us = math.ceil(-debt_bytes * 1e6 / _CATCH_UP_BYTES_PER_S)
            return Curve(round(-debt_bytes * 1e6 / catch_up_us), catch_up_us, self.rate_bps // 8)
        return self._steady

    def _begin(self, curve: Curve) -> None:
        self._channel.request(hfsc.put_class(self._index, CLASS, ROOT, curve))
        self._pauses = curve.first_us > 0 and not self.is_held

    def counters(self) -> Counters:
        """Returns the queue's counters. Removes the pause of the last change from the curve once the
        queue is empty: HFSC would repeat it before the first packet after every idle time
        (rtsc_min)."""
        counted = self._counters()
        if self._pauses and counted.queue_packets == 0:
            self._begin(self._steady)
        return counted

    def _counters(self) -> Counters:
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
        if not self.is_shut:
            counted.update(self._leaf.own_counters())
        return counted

    def sojourns(self) -> None:
        """Returns None: HFSC does not count how long packets waited."""
