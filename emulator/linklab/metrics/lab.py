"""The emulator in Prometheus: what happened, whether it kept up, where it ran. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from linklab.core.records import EventRecord, LinkRecord, MachineRecord, QueueRecord, Record
from linklab.metrics.metric import Metric, Readings, declared, one
from linklab.models.layer import STEP_S
from linklab.models.registry import HAPPENINGS

LATE_S = STEP_S
"""An emulator that comes later than one step of the link models is late."""

BUSY_RATIO = 0.97
"""A core that is busier than this has no time left, and links carry less than they could."""

LATENESS_WINDOW_S = 5.0
"""The lateness is the worst of so many seconds, or a scrape would see only the last change's."""

KINDS = (*HAPPENINGS, "live")
"""Kinds of events that every link counts from 0: the step from 0 to 1 is what is annotated."""


@dataclass(frozen=True)
class Place:
    """Where a run happens and of what revision."""

    place: str = ""
    clock: str = ""
    revision: str = ""


class Lab:
    """The emulator during a run over `links`, from the records that it has been told so far."""

    def __init__(self, links: Sequence[str], place: Place) -> None:
        self.place = place
        self.events = Counter({(link, kind): 0 for link in links for kind in KINDS})
        self.busy_ratio = 0.0
        self._late: deque[tuple[float, float]] = deque()

    def record(self, t_s: float, record: Record) -> None:
        """Takes in a record of time `t_s`, which is no earlier than the one before."""
        match record:
            case LinkRecord() | QueueRecord():
                self._late.append((t_s, record.late_s))
                while self._late[0][0] < t_s - LATENESS_WINDOW_S:
                    self._late.popleft()
            case EventRecord():
                self.events[record.link, record.kind] += 1
            case MachineRecord():
                self.busy_ratio = record.busy_ratio

    def pass_time(self, now_s: float) -> None:
        """It is `now_s` seconds after the scenario's beginning now."""
        while self._late and self._late[0][0] < now_s - LATENESS_WINDOW_S:
            self._late.popleft()

    @property
    def lateness_s(self) -> float:
        """The worst of the last seconds."""
        return max((late_s for _, late_s in self._late), default=0.0)


def _events(lab: Lab) -> Readings:
    yield from lab.events.items()


def _info(lab: Lab) -> Readings:
    yield (lab.place.place, lab.place.clock, lab.place.revision), 1


EVENTS = Metric(
    "linklab_events_total",
    "counter",
    "What happened to the links, by kind.",
    _events,
    ("link", "kind"),
)

LATENESS = Metric[Lab](
    "linklab_lateness_seconds",
    "gauge",
    "By how much the emulator came late at the worst in the last 5 seconds.",
    lambda lab: one(lab.lateness_s),
)

BUSY = Metric[Lab](
    "linklab_busy_ratio",
    "gauge",
    "Busy share of the emulator's core in the last second; 0 in virtual time.",
    lambda lab: one(lab.busy_ratio),
)

INFO = Metric(
    "linklab_run_info",
    "gauge",
    "Where the run happens and of what revision.",
    _info,
    ("place", "clock", "revision"),
)

METRICS = declared(globals())
