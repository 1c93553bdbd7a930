"""Defines the metrics of a run as a whole: when, where, of which revision, and whether its figures
are valid for the scenario. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from linklab.metrics.lab import LabMetrics
from linklab.metrics.metric import Metric, Readings, declared, single


@dataclass(frozen=True)
class Setting:
    """Holds the run's environment and revision, the algorithm's position in lists, the scenario's
    start in Unix seconds, the payload's direction, "down" or "up", and its share of the bytes that
    a link carries, by link."""

    place: str = ""
    revision: str = ""
    order: int = 0
    began_s: float = 0.0
    direction: str = "down"
    goodput_ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass
class About:
    """Holds the facts about a run as a whole. `ended_s` is its end in Unix seconds."""

    setting: Setting
    lab: LabMetrics
    ended_s: float | None = None


def _info(about: About) -> Readings:
    yield (about.setting.place, about.setting.revision, about.setting.direction), 1


def _flaws(about: About) -> Readings:
    for name, is_so in about.lab.flaws.items():
        yield (name,), float(is_so)


INFO = Metric(
    "linklab_run_info",
    "Where the run happens and of what revision, and which way its payload goes.",
    _info,
    ("place", "revision", "direction"),
)

FLAWED = Metric(
    "linklab_run_flawed",
    "Whether the run's figures are not the scenario's, and why.",
    _flaws,
    ("why",),
)

ORDER = Metric[About](
    "linklab_run_algorithm_order",
    "The algorithm's place in lists of all.",
    lambda about: single(about.setting.order),
)

BEGAN = Metric[About](
    "linklab_run_began_timestamp_seconds",
    "When the run's scenario began, by the clock of Prometheus.",
    lambda about: single(about.setting.began_s),
)

ENDED = Metric[About](
    "linklab_run_ended_timestamp_seconds",
    "When the run ended, by the clock of Prometheus.",
    lambda about: single(about.ended_s),
)

METRICS = declared(globals())
