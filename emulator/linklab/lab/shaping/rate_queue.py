"""Holds rate and queue of one direction of a link, with the kernel's queueing disciplines, over
netlink.

The access node's egress holds the rate and the queue. The core node's egress holds delay, jitter
and loss (`delay.py`). They are never in one qdisc, because netem's limit counts delayed packets
(Beshay et al., MASCOTS 2015). They are never on an end host, whose TCP would see the queue (TCP
small queues).

The guest's kernel has a qdisc for the rate that is exact for each packet (`link_qdisc.py`). Another
kernel has HFSC (`hfsc_queue.py`).
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import link_qdisc, tc
from linklab.lab.shaping.hfsc_queue import HfscQueue
from linklab.lab.shaping.leaf_queue import CLASS, LeafQueue
from linklab.lab.shaping.tc import ROOT, Counters
from linklab.queues import registry


class RateQueue(Protocol):
    """Holds rate and queue of one direction, on an access node's interface.

    A held queue sends nothing, and drops only what exceeds its size. A shut queue loses its content
    and everything that arrives.
    """

    shaper: str
    rate_bps: int
    is_held: bool
    is_shut: bool

    def resize(self, queue_bytes: int | None) -> None:
        """Changes the queue's size, None to its first one. What is in it stays."""

    def set(self, rate_bps: int, *, is_held: bool, is_shut: bool = False) -> None:
        """Changes the rate at once. The queue keeps its content unless it is shut. Equal values
        change nothing."""

    def counters(self) -> Counters:
        """Returns the queue's counters. The frame on the air waits, too."""

    def own_counters(self) -> Mapping[str, int]:
        """Returns the counters that only this queue discipline has, by name."""

    def sojourns(self) -> list[list[int]] | None:
        """Returns how many packets waited how long, as `link_qdisc.sojourns`. None if the kernel does
        not count them."""


def rate_queue(
    channel: Channel,
    index: int,
    rate_bps: int,
    queue_bytes: int,
    discipline: Any = registry.DEFAULT,
    slack_s: float = 0.0,
) -> RateQueue:
    """Builds the queue of one direction on the interface `index`.

    `channel` is a netlink socket in the node's namespace. `discipline` has the settings of the queue
    discipline. `slack_s` is the lateness of timers that costs no rate with HFSC. Raises ShapingError
    if the kernel lacks the discipline.
    """
    leaf = LeafQueue(channel, index, queue_bytes, discipline)
    try:
        return LinkQueue(channel, index, rate_bps, leaf)
    except NetlinkError as error:
        if error.errno != errno.ENOENT:
            raise
    return HfscQueue(channel, index, rate_bps, leaf, slack_s)


class LinkQueue:
    """A queue whose rate the guest kernel's own qdisc holds."""

    shaper = link_qdisc.NAME

    def __init__(self, channel: Channel, index: int, rate_bps: int, leaf: LeafQueue) -> None:
        self._channel = channel
        self._index = index
        self._leaf = leaf
        self._get = tc.get_qdisc(index, ROOT)
        self.rate_bps = rate_bps
        self.is_held = False
        self.is_shut = False
        options = link_qdisc.rate(rate_bps)
        channel.request(
            tc.about(tc.NEWQDISC, tc.ADD, index, ROOT, tc.ROOT_PARENT, link_qdisc.NAME, options)
        )
        leaf.put()
        self.resize, self.own_counters = leaf.resize, leaf.own_counters

    def set(self, rate_bps: int, *, is_held: bool, is_shut: bool = False) -> None:
        if (rate_bps, is_held, is_shut) == (self.rate_bps, self.is_held, self.is_shut):
            return
        options = link_qdisc.rate(0 if is_held else rate_bps)
        if is_shut != self.is_shut:
            options += link_qdisc.shut(is_shut=is_shut)
        self.rate_bps, self.is_held, self.is_shut = rate_bps, is_held, is_shut
        self._change(options)

    def follow(self, rates: Sequence[tuple[int, int]]) -> None:
        """Lets the kernel change the rate at given times: in ns of the monotonic clock, with the rate
        from then on, 0 to hold all frames. The next call of `set` has to come later than all."""
        self._change(link_qdisc.table(rates))
        self.rate_bps, self.is_held = rates[-1][1], not rates[-1][1]

    def _change(self, options: bytes) -> None:
        self._channel.request(
            tc.change_qdisc(self._index, ROOT, tc.ROOT_PARENT, link_qdisc.NAME, options)
        )

    def counters(self) -> Counters:
        answer = self._channel.request(self._get)
        return replace(tc.counters(answer), lost_packets=link_qdisc.lost_packets(answer))

    def sojourns(self) -> list[list[int]]:
        return link_qdisc.sojourns(self._channel.request(tc.get_class(self._index, CLASS)))
