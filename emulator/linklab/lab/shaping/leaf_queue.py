"""Puts a link's queue discipline below the qdisc that holds the rate."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any, Final

from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import tc
from linklab.lab.shaping.tc import ShapingError
from linklab.queues import registry

CLASS: Final = 0x10001
FIRST_LEAF: Final = 0x100000


class LeafQueue:
    """The queue of one direction, on the interface `index`. `channel` is a netlink socket in the node's
    namespace. `discipline` has the settings of the queue discipline."""

    def __init__(self, channel: Channel, index: int, queue_bytes: int, discipline: Any) -> None:
        self._channel = channel
        self._index = index
        self._settings, self._discipline = discipline, registry.of_settings(discipline)
        self._own_bytes = self._queue_bytes = queue_bytes
        self._handle = FIRST_LEAF

    def put(self, handle: int = FIRST_LEAF) -> None:
        """Puts an empty queue with this handle in the place of what was there.

        Raises ShapingError if the kernel lacks the discipline.
        """
        self._handle = handle
        options = self._discipline.once(self._settings) + self._options
        try:
            self._channel.request(
                tc.put_qdisc(self._index, handle, CLASS, self._discipline.kind, options)
            )
        except NetlinkError as error:
            if error.errno != errno.ENOENT:
                raise
            raise ShapingError(
                f"this kernel lacks the queue discipline {self._discipline.kind}; the guest's kernel "
                "has it (--place guest)"
            ) from error

    @property
    def _options(self) -> bytes:
        return self._discipline.options(self._settings, self._queue_bytes)

    def resize(self, queue_bytes: int | None, *, is_there: bool = True) -> None:
        """Changes the queue's size, None to its first one. What is in it stays. A queue that is not
        there has the new size once it is put."""
        wanted = self._own_bytes if queue_bytes is None else queue_bytes
        if wanted == self._queue_bytes:
            return
        self._queue_bytes = wanted
        if is_there:
            kind = self._discipline.kind
            self._channel.request(
                tc.change_qdisc(self._index, self._handle, CLASS, kind, self._options)
            )

    def own_counters(self) -> Mapping[str, int]:
        """Returns the counters that only this queue discipline has, by name."""
        if self._discipline.counters is None:
            return {}
        answer = self._channel.request(tc.get_qdisc(self._index, self._handle))
        return self._discipline.counters(tc.leaf(answer))
