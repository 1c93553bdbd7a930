"""Defines a run's figures, one row each: name, computation and display. Pure.

Comparison tables, JSON, reports, exported tables, Prometheus and regression baselines iterate over
these rows. A *new figure* is a row of this file. If a run directory has to keep the figure, it is
also an attribute of `RunFigures`.

A row is one number for a run. Figures of each queue, flow, or client and of each shared link have
names of their own in `queue_figures.py`, `traffic_figures.py` and `shares.py`. Those of a workload
are rows of `workload_figures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from linklab.core import units
from linklab.energy.account import EnergyFigures
from linklab.runs.run_figures import RunFigures


@dataclass(frozen=True, slots=True)
class Unit:
    """Defines how people read and write values. One `symbol` is `base` base units. `digits` follow
    the point."""

    symbol: str
    base: float
    digits: int
    parse: Callable[[str], float]

    def format(self, value: float) -> str:
        """Writes a value in base units with its unit."""
        return f"{value / self.base:.{self.digits}f} {self.symbol}".rstrip()


SECONDS: Final = Unit("s", 1, 3, units.parse_duration)
MEGABYTES: Final = Unit("MB", 1e6, 2, units.parse_size)
MEGABITS: Final = Unit("Mbit/s", 1e6, 1, units.parse_rate)
RATIO: Final = Unit("", 1, 3, units.parse_number)
COUNT: Final = Unit("", 1, 0, units.parse_number)


@dataclass(frozen=True, slots=True)
class Column:
    """Holds a column of a table, in the figure's unit. `ascii_heading` is for consoles that only
    have ASCII. `with_unit` puts the unit behind each value. Columns are sorted by `place`, then by
    RUN_FIGURES."""

    heading: str
    digits: int
    ascii_heading: str = ""
    with_unit: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Defines how a regression suite compares the figure. `key` is the key of the suite's bounds,
    `example` an amount for its error message. A baseline keeps `digits` digits. By default the
    figure may move by `relative`, a share of the baseline's value, or by `absolute`, whichever is
    more. A baseline that lacks a figure with `needs` is refused."""

    key: str
    heading: str
    example: str
    digits: int
    absolute: float
    relative: float = 0.0
    needed: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True)
class Gauge:
    """Holds the figure's name and help in Prometheus. `base` is the number of base units in
    Prometheus' unit. `place` is as in Column."""

    name: str
    help: str
    base: float = 1.0
    place: int = 0


View = TypeVar("View", Column, Bounds, Gauge)


@dataclass(frozen=True, slots=True)
class RunFigure:
    """Defines a figure of a run. `key` names it in JSON, exported tables and baselines. Values are
    in base units. `of` returns None if a run lacks the figure. The views are `table` (`linklab
    compare`), `page` (`linklab report`), `bounds` (`linklab regress`), `gauge` (Prometheus) and
    `in_json` (`linklab compare --json`). A view that is None does not show the figure."""

    key: str
    title: str
    unit: Unit
    of: Callable[[RunFigures], float | None]
    more_is_worse: bool = True
    table: Column | None = None
    page: Column | None = None
    bounds: Bounds | None = None
    gauge: Gauge | None = None
    in_json: bool = True


# A start shifted by some µs changes a download by 0.11 % without loss and by 0.37 % with 1 % loss
# (hs-s7 of 100 MB by alg3, four seeds, at 3cbe9f4a). 1 % is above both. 20 ms are a step of the link models.
DOWNLOAD: Final = RunFigure(
    key="download_s",
    title="download time",
    unit=SECONDS,
    of=lambda run: run.download_s,
    table=Column("time\ns", 2, place=-2),
    bounds=Bounds(
        "download", "now s", "20 ms", digits=4, absolute=0.02, relative=0.01, needed=True
    ),
    gauge=Gauge("linklab_run_download_seconds", "Time of the run's download, or upload."),
)
GOODPUT: Final = RunFigure(
    key="goodput_bps",
    title="goodput",
    unit=MEGABITS,
    of=lambda run: run.goodput_bps,
    more_is_worse=False,
    table=Column("goodput\nMbit/s", 1),
    page=Column("Mbit/s", 1),
    gauge=Gauge(
        "linklab_run_goodput_bytes_per_second",
        "Payload by the time of the run's download, or upload.",
        base=8,
    ),
)
ORACLE: Final = RunFigure(
    key="oracle_s",
    title="least time",
    unit=SECONDS,
    of=lambda run: run.oracle_s,
    gauge=Gauge(
        "linklab_run_oracle_seconds",
        "Least time in which the links could have delivered the payload.",
    ),
    in_json=False,  # All rows of a comparison share one.
)
EFFICIENCY: Final = RunFigure(
    key="efficiency",
    title="efficiency",
    unit=RATIO,
    of=lambda run: run.efficiency,
    more_is_worse=False,
    table=Column("effi-\nciency", 3),
    page=Column("efficiency", 3),
    bounds=Bounds("efficiency", "efficiency", "0.02", digits=4, absolute=0.02),
    gauge=Gauge("linklab_run_efficiency_ratio", "Oracle time / time of the download, or upload."),
)
# A share of a value near zero is meaningless. 0.2 s is about the end of one request.
LINK_DELTA: Final = RunFigure(
    key="link_delta_s",
    title="link Δ",
    unit=SECONDS,
    of=lambda run: run.link_delta_s,
    table=Column("Δ\ns", 2, ascii_heading="diff\ns", place=-1),
    page=Column("link Δ", 2, with_unit=True),
    bounds=Bounds("link_delta", "link Δ s", "200 ms", digits=4, absolute=0.2),
    gauge=Gauge("linklab_run_link_delta_seconds", "By how much one link finished after the other."),
)
# A cancelled request still delivers about 300 kB.
WASTED: Final = RunFigure(
    key="wasted_bytes",
    title="bytes wasted",
    unit=MEGABYTES,
    of=lambda run: run.wasted_bytes,
    page=Column("wasted", 1, with_unit=True),
    bounds=Bounds("wasted", "wasted MB", "300 kB", digits=0, absolute=300e3),
    gauge=Gauge(
        "linklab_run_wasted_bytes", "Bytes that links carried and nobody could use.", place=1
    ),
    in_json=False,  # The JSON has it per link.
)
# The lab samples queues every 0.5 s. This is a little more.
STALLED: Final = RunFigure(
    key="stalled_s",
    title="stalls",
    unit=SECONDS,
    of=lambda run: run.stalled_s,
    bounds=Bounds("stalls", "stalls s", "600 ms", digits=4, absolute=0.6),
    gauge=Gauge(
        "linklab_run_stalled_seconds",
        "How long no link delivered anything although bytes were missing.",
    ),
    in_json=False,
)


@dataclass(frozen=True, slots=True)
class EnergyFigure:
    """Defines a figure of a run's energy. The key names its unit: joules, watts or joules per byte.
    `EnergyFigures` describes the values. `table` is as in RunFigure."""

    key: str
    of: Callable[[EnergyFigures], float]
    table: Column | None = None


JOULES: Final = EnergyFigure("joules", lambda one: one.joules, Column("ener.\nJ", 1))
JOULES_PER_BYTE: Final = EnergyFigure("joules_per_byte", lambda one: one.joules_per_byte)
MAIN: Final = EnergyFigure("main_j", lambda one: one.main_j)
TAIL: Final = EnergyFigure("tail_j", lambda one: one.tail_j)
PHONE: Final = EnergyFigure("phone_j", lambda one: one.phone_j)
MEAN_POWER: Final = EnergyFigure("mean_w", lambda one: one.mean_w)
P90_POWER: Final = EnergyFigure("p90_w", lambda one: one.p90_w)
PEAK_POWER: Final = EnergyFigure("peak_w", lambda one: one.peak_w)

RUN_FIGURES: Final = tuple(one for one in globals().values() if isinstance(one, RunFigure))
"""All figures, in the order of this file and of exported tables."""

ENERGY_FIGURES: Final = tuple(one for one in globals().values() if isinstance(one, EnergyFigure))
"""All energy figures, of runs with an energy model."""


def figures_in(view: Callable[[RunFigure], View | None]) -> list[tuple[RunFigure, View]]:
    """Returns the figures that a view shows, each with its view, in the view's order."""
    found = [(one, how) for one in RUN_FIGURES if (how := view(one)) is not None]
    return sorted(found, key=lambda each: each[1].place)
