"""Adds the impairments of one direction by netem, on a middlebox's interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from linklab.core.impairments import NORMAL, Impairments
from linklab.lab.kernel.netlink import Channel
from linklab.lab.shaping import netem, tc
from linklab.lab.shaping.delay import IN_ORDER_RATE_BYTES_PER_S, NETEM_LIMIT_PACKETS
from linklab.lab.shaping.tc import Counters
from linklab.models import delay_tables
from linklab.models.delay_tables import DelayTable
from linklab.models.loss import bursts_of

_ROOT: Final = 0x10000


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
        self._seed = seed
        self._get = tc.get_qdisc(index, _ROOT)
        self._had_jitter = False
        self._impairments = impairments
        self._send(new=True)
        netem.check_seed(channel.request(self._get), seed)

    def set(self, impairments: Impairments) -> None:
        """Changes the impairments for packets from now on. Equal ones change nothing."""
        if impairments == self._impairments:
            return
        self._impairments = impairments
        self._seed = netem.next_seed(self._seed)
        self._send()

    def _send(self, *, new: bool = False) -> None:
        now = self._impairments
        loss_ratio = now.loss_ratio or 0.0
        self._channel.request(
            netem.put(
                self._index,
                _ROOT,
                limit_packets=NETEM_LIMIT_PACKETS,
                delay_s=now.delay_s or 0.0,
                slot_s=None,
                loss_ratio=loss_ratio,
                bursts=bursts_of(loss_ratio, now.loss_burst_packets or 1.0),
                rate_bytes_per_s=None if now.in_order is False else IN_ORDER_RATE_BYTES_PER_S,
                strays=self._strays(),
                seed=self._seed,
                new=new,
            )
        )

    def _strays(self) -> netem.Strays:
        now = self._impairments
        jitter_s = now.jitter_s or 0.0
        table = None
        if jitter_s or self._had_jitter:
            self._had_jitter = True
            name = now.distribution or NORMAL
            table = self._tables.get(name) or delay_tables.of_name(name)
        return netem.Strays(
            jitter_s=0.0 if table is None else jitter_s * table.widening,
            table=() if table is None else table.entries,
            reorder_ratio=now.reorder_ratio or 0.0,
            duplicate_ratio=now.duplicate_ratio or 0.0,
            corrupt_ratio=now.corrupt_ratio or 0.0,
        )

    def counters(self) -> Counters:
        """Returns netem's counters. Its drops are the seeded losses."""
        return tc.counters(self._channel.request(self._get))
