"""Tells while a run goes on how much of its payload the links have carried, and how far its clock is."""

from __future__ import annotations

import contextlib
from pathlib import Path

from linklab.core import frames
from linklab.core.records import QueueRecord, Tail
from linklab.scenario import Scenario


class PayloadShare:
    """Follows the counters in the directory of a run, which may belong to a guest.

    Attributes:
        lab_s: the lab's time of the newest counters.
    """

    def __init__(self, directory: Path, scenario: Scenario) -> None:
        self._samples = Tail(directory, QueueRecord)
        self._direction = scenario.workload.direction
        self._ratios = {
            name: frames.goodput_ratio(link.families) for name, link in scenario.links.items()
        }
        self._whole_bytes = scenario.payload.size_bytes * len(scenario.clients)
        self._sent_bytes: dict[str, int] = {}
        self.lab_s = 0.0

    def now(self) -> float:
        """Returns the share from 0 to 1, of all clients together. What is sent twice counts twice, and
        traffic of others counts, too. So 1 may come early.

        Files that cannot be read change nothing: their error is reported when the run has ended.
        """
        with contextlib.suppress(OSError):
            for one in self._samples.read():
                self.lab_s = one.t_s
                if one.direction == self._direction and one.link in self._ratios:
                    self._sent_bytes[one.link] = one.sent_bytes
        carried = sum(count * self._ratios[link] for link, count in self._sent_bytes.items())
        return min(1.0, carried / self._whole_bytes)
