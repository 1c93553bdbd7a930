"""Adds the impairments of one direction, on a middlebox's interface.

Filters drop and change packets first. netem then loses, delays and copies what is left.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from linklab.core.frames import ETHERNET_BYTES
from linklab.core.impairments import NORMAL, Impairments
from linklab.core.ip_family import IPV4, IPV6
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import filters, tc
from linklab.lab.shaping.delay import Netem
from linklab.lab.shaping.netem import Settings
from linklab.lab.shaping.tc import ShapingError
from linklab.models import delay_tables
from linklab.models.delay_tables import DelayTable


class ImpairedPath:
    """Holds the impairments of one direction.

    `tables` are the scenario's delay distributions. `seed` seeds all random numbers.
    """

    def __init__(
        self,
        channel: Channel,
        index: int,
        impairments: Impairments,
        tables: Mapping[str, DelayTable],
        seed: int,
    ) -> None:
        self._channel = channel
        self._index = index
        self._tables = tables
        self._impairments = impairments
        self._netem = Netem(channel, index, self._settings, seed)
        self._has_filters = False
        self._filters: dict[int, bytes] = {}
        self._filter()

    def remove(self) -> None:
        """Removes the qdiscs with their filters. What they hold is lost."""
        self._netem.remove()
        if self._has_filters:
            self._channel.request(filters.delete_clsact(self._index))

    def set(self, impairments: Impairments) -> None:
        """Changes the impairments for packets from now on. Equal ones change nothing."""
        if impairments == self._impairments:
            return
        self._impairments = impairments
        self._netem.put(self._settings)
        self._filter()

    def _filter(self) -> None:
        """Adds and removes filters. One that stays the same keeps its state."""
        for priority, filter_of in enumerate(_FILTERS, 1):
            old = self._filters.get(priority)
            new = filter_of(self._impairments, self._index, priority)
            if old == new:
                continue
            if old is not None:
                self._request(filters.remove(self._index, priority))
                del self._filters[priority]
            if new is not None:
                if not self._has_filters:
                    self._request(filters.add_clsact(self._index))
                    self._has_filters = True
                self._request(new)
                self._filters[priority] = new

    def _request(self, change: bytes) -> None:
        try:
            self._channel.request(change)
        except NetlinkError as error:
            if error.errno != errno.ENOENT:
                raise
            raise ShapingError(
                "this kernel lacks policers or header filters; the guest's kernel has those of "
                "places/guest/kernel.config"
            ) from error

    @property
    def _settings(self) -> Settings:
        now = self._impairments
        jitter_s, table = now.jitter_s or 0.0, None
        if jitter_s:
            name = now.distribution or NORMAL
            table = self._tables.get(name) or delay_tables.of_name(name)
        return Settings(
            delay_s=now.delay_s or 0.0,
            loss_ratio=now.loss_ratio or 0.0,
            loss_burst_packets=now.loss_burst_packets or 1.0,
            in_order=now.in_order is not False,
            jitter_s=0.0 if table is None else jitter_s * table.widening,
            table=() if table is None else table.entries,
            reorder_ratio=now.reorder_ratio or 0.0,
            duplicate_ratio=now.duplicate_ratio or 0.0,
            corrupt_ratio=now.corrupt_ratio or 0.0,
        )

    def lost_packets(self) -> int:
        """Returns how many packets netem and the filters have dropped."""
        lost_packets = self._netem.counters().dropped_packets
        if self._has_filters:
            get = tc.get_qdisc(self._index, filters.HANDLE)
            lost_packets += tc.counters(self._channel.request(get)).dropped_packets
        return lost_packets


def _dropping_larger(impairments: Impairments, index: int, priority: int) -> bytes | None:
    if not (impairments.black_hole and impairments.mtu_bytes):
        return None
    return filters.drop_larger(index, priority, impairments.mtu_bytes + ETHERNET_BYTES)


def _policing(impairments: Impairments, index: int, priority: int) -> bytes | None:
    if not (impairments.police_bps and impairments.police_burst_bytes):
        return None
    return filters.police(index, priority, impairments.police_bps, impairments.police_burst_bytes)


def _bleaching(family: int, impairments: Impairments, index: int, priority: int) -> bytes | None:
    return filters.bleach_ecn(index, priority, family) if impairments.bleach_ecn else None


_FILTERS: Final[tuple[Callable[[Impairments, int, int], bytes | None], ...]] = (
    _dropping_larger,
    _policing,
    partial(_bleaching, IPV4),
    partial(_bleaching, IPV6),
)
"""In the order of their priorities, from 1. Each returns its filter, None without."""
