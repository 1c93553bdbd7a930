"""Defines the emulator's metrics: its events, and whether it keeps up. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from linklab.core.limits import MAX_LATE_S
from linklab.core.records import EventRecord, LinkRecord, MachineRecord, QueueRecord, Record
from linklab.metrics.metric import Metric, Readings, declared, single
from linklab.models.events import BY_HAND, BY_HAND_END
from linklab.models.registry import HAPPENINGS

BUSY_RATIO = 0.97
"""A core with a higher load has no time left. Links may then carry less than they should."""

BUSY_RECORDS = 3
"""The number of samples, one per second, after which a core counts as busy. Starting programs also
fill a core for a moment."""

LATENESS_WINDOW_S = 5.0
"""The lateness is the maximum over this time. Otherwise a scrape would see only the last change's.
"""

KINDS = (*HAPPENINGS, BY_HAND, BY_HAND_END)
"""The kinds of events that every link counts from 0. Dashboards annotate the step from 0 to 1."""


FLAWS = ("by hand", "late", "busy")
"""The reasons why a run's figures are not valid for its scenario: a user changed links, the
emulator changed links too late, or its core had no time left."""


class LabMetrics:
    """Counts the records of the emulator during a run over `links`."""

    def __init__(self, links: Sequence[str]) -> None:
        self.events = Counter({(link, kind): 0 for link in links for kind in KINDS})
        self.flaws = dict.fromkeys(FLAWS, False)
        self.busy_ratio = 0.0
        self._busy_records = 0
        self._late: deque[tuple[float, float]] = deque()

    def record(self, t_s: float, record: Record) -> None:
        """Counts a record of time `t_s`. Times must not decrease."""
        match record:
            case LinkRecord() | QueueRecord():
                self._late.append((t_s, record.late_s))
                while self._late[0][0] < t_s - LATENESS_WINDOW_S:
                    self._late.popleft()
            case EventRecord():
                self.events[record.link, record.kind] += 1
                self.flaws["by hand"] |= record.kind == BY_HAND
            case MachineRecord():
                self.busy_ratio = record.busy_ratio
                busy = t_s > 0 and record.busy_ratio >= BUSY_RATIO
                self._busy_records = self._busy_records + 1 if busy else 0
        self.flaws["late"] |= self.is_late
        self.flaws["busy"] |= self.is_busy

    def pass_time(self, now_s: float) -> None:
        """Moves to `now_s` seconds since the scenario's start."""
        while self._late and self._late[0][0] < now_s - LATENESS_WINDOW_S:
            self._late.popleft()

    @property
    def lateness_s(self) -> float:
        """The worst lateness in the last LATENESS_WINDOW_S."""
        return max((late_s for _, late_s in self._late), default=0.0)

    @property
    def is_late(self) -> bool:
        """Whether the recent lateness is large enough to change results."""
        return self.lateness_s > MAX_LATE_S

    @property
    def is_busy(self) -> bool:
        """Whether the core has had no time left for the last seconds."""
        return self._busy_records >= BUSY_RECORDS


def _events(lab: LabMetrics) -> Readings:
    yield from lab.events.items()


EVENTS = Metric(
    "linklab_events_total",
    "What happened to the links, by kind.",
    _events,
    ("link", "kind"),
)

LATENESS = Metric[LabMetrics](
    "linklab_lateness_seconds",
    "By how much the emulator came late at the worst in the last 5 seconds.",
    lambda lab: single(lab.lateness_s),
)

BUSY = Metric[LabMetrics](
    "linklab_busy_ratio",
    "Busy share of the emulator's core in the last second; 0 in virtual time.",
    lambda lab: single(lab.busy_ratio),
)

METRICS = declared(globals())
