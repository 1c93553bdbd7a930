"""Defines the measures that publications report, with units and how runs yield them. Pure.

A *new measure* is an entry of MEASURES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linklab.core import units
from linklab.core.statistics import Numbers
from linklab.energy.account import EnergyFigures
from linklab.runs.figures import DOWNLOAD, EFFICIENCY, GOODPUT, RunFigure
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.process_figures import ONCE_A_SECOND
from linklab.runs.run_figures import ProcessFigures
from linklab.runs.workload_figures import FIGURES, ROUND_TRIP
from linklab.schema.quantities import Quantity, duration, measure, number, rate, ratio, size

Columns = tuple[float, ...]
"""The values that one run contributes: one number, or several that belong together."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Defines one measure.

    `columns` returns a run's values (for one link if `per_link`), or None if the run has none.
    `of_many` reduces the columns of many runs to one number along an axis. `words` writes a value
    for people. `more_is_better` decides which of several clients is the best. `near_zero` forbids
    relative errors. `real_clock` restricts the measure to runs on the real clock.
    """

    words: str
    quantity: Quantity
    say: Callable[[float], str]
    columns: Callable[[LoadedRun, str], Columns | None] | None = None
    of_many: Callable[..., Any] = np.median
    more_is_better: bool = False
    per_link: bool = False
    near_zero: bool = False
    real_clock: bool = False


def _time(value: float) -> str:
    return f"{value:.2f} s"


def _short_time(value: float) -> str:
    return f"{value * 1e3:.1f} ms"


def _rate(value: float) -> str:
    return f"{value / 1e6:.2f} Mbit/s"


def _share(value: float) -> str:
    return units.percent(value, ".1")


def _in(unit: str, digits: int = 2) -> Callable[[float], str]:
    return lambda value: f"{value:.{digits}f} {unit}"


def _of(figure: RunFigure) -> Callable[[LoadedRun, str], Columns | None]:
    """Returns a function that reads one figure of a run."""

    def columns(run: LoadedRun, _: str) -> Columns | None:
        found = None if run.figures is None else figure.of(run.figures)
        return None if found is None else (found,)

    return columns


def _burst_goodput(run: LoadedRun, _: str) -> Columns | None:
    """Returns the payload by the length of the bursts (MPTCP study 2.3.2)."""
    energy = None if run.figures is None else run.figures.energy
    if run.figures is None or energy is None or not energy.bursts_s:
        return None
    return (run.figures.carried_bytes * 8 / energy.bursts_s,)


def _ends(run: LoadedRun, _: str) -> Columns | None:
    """Returns when each link finished, in the scenario's order. None unless several links did."""
    if run.figures is None:
        return None
    ends = [link.finish_s for link in run.figures.links.values()]
    return tuple(end for end in ends if end is not None) if len(ends) > 1 and all(ends) else None


def _between_medians(*ends: Numbers, axis: int = -1) -> Any:
    medians = np.stack([np.median(one, axis=axis) for one in ends])
    return np.max(medians, axis=0) - np.min(medians, axis=0)


def _link_rate(run: LoadedRun, link: str) -> Columns | None:
    rate_bps = (run.rates_bps or {}).get(link)
    return None if rate_bps is None else (rate_bps,)


def _deviation(values: Numbers, axis: int = -1) -> Any:
    if values.shape[axis] < 2:
        return np.full_like(np.mean(values, axis=axis), np.nan)
    return np.std(values, axis=axis, ddof=1)


def _link_bytes(run: LoadedRun, link: str) -> Columns | None:
    found = None if run.figures is None else run.figures.links.get(link)
    return None if found is None else (float(found.bytes),)


def _link_share(run: LoadedRun, link: str) -> Columns | None:
    if run.figures is None or link not in run.scenario.links:
        return None
    found = run.figures.links.get(link)
    return (0.0 if found is None else found.share,)


_JOULES: Final = measure("J", 0, 1e6)
_WATTS: Final = measure("W", 0, 1000)
_PERCENT: Final = number(0, 1000, "%")
_TIME: Final = duration(0, 86400)
_RATE: Final = rate(0, 10**12)


def _of_workload(key: str) -> Measure:
    """Returns the measure of a workload's own figure. Runs of other workloads have none."""
    figure = FIGURES[key]

    def columns(run: LoadedRun, _: str) -> Columns | None:
        own = None if run.figures is None else run.figures.workload
        return None if own is None or key not in own else (own[key],)

    if figure.unit:
        return Measure(figure.title, _TIME, _short_time if figure.by_lab else _time, columns)
    return Measure(figure.title, number(0, 1e6), lambda value: f"{value:.0f}", columns)


def _energy(
    words: str,
    quantity: Quantity,
    unit: str,
    of: Callable[[EnergyFigures], float | None],
    *,
    near_zero: bool = False,
    real_clock: bool = False,
) -> Measure:
    """Returns a measure of energy. Runs without an energy model have none."""

    def columns(run: LoadedRun, _: str) -> Columns | None:
        energy = None if run.figures is None else run.figures.energy
        value = None if energy is None else of(energy)
        return None if value is None else (value,)

    return Measure(words, quantity, _in(unit), columns, near_zero=near_zero, real_clock=real_clock)


def _processor(
    words: str, quantity: Quantity, unit: str, of: Callable[[ProcessFigures], float | None]
) -> Measure:
    """Returns a measure of the client's processor use. Runs in virtual time have none."""

    def columns(run: LoadedRun, _: str) -> Columns | None:
        processes = None if run.figures is None else run.figures.processes
        looked = (processes or {}).get("client", {}).get(ONCE_A_SECOND)
        value = None if looked is None else of(looked)
        return None if value is None else (value,)

    return Measure(words, quantity, _in(unit), columns, real_clock=True)


def _burst_load(run: LoadedRun) -> Columns | None:
    load = None if run.figures is None else run.figures.burst_load
    return None if load is None else (100 * load,)


def _from_first_byte(run: LoadedRun) -> Columns | None:
    took_s = None if run.figures is None else run.figures.from_first_byte_s
    return None if took_s is None else (took_s,)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


MEASURES: Final[dict[str, Measure]] = {
    "download": Measure("download", _TIME, _time, _of(DOWNLOAD)),
    "goodput": Measure("goodput", _RATE, _rate, _of(GOODPUT), more_is_better=True),
    "burst-goodput": Measure(
        "goodput of the bursts", _RATE, _rate, _burst_goodput, more_is_better=True
    ),
    "efficiency": Measure(
        "share of what all links could carry", ratio(), _share, _of(EFFICIENCY), more_is_better=True
    ),
    "link-delta": Measure(
        "time between the ends of the links",
        _TIME,
        _time,
        _ends,
        _between_medians,
        near_zero=True,
    ),
    "link-rate": Measure(
        "typical rate", _RATE, _rate, _link_rate, more_is_better=True, per_link=True
    ),
    "link-deviation": Measure(
        "deviation of the typical rate between runs",
        _RATE,
        _rate,
        _link_rate,
        _deviation,
        per_link=True,
        near_zero=True,
    ),
    "link-share": Measure(
        "share of the bytes", ratio(), _share, _link_share, more_is_better=True, per_link=True
    ),
    "link-bytes": Measure(
        "bytes",
        size(0, 10**12),
        lambda value: units.format_size(round(value)),
        _link_bytes,
        per_link=True,
    ),
    "energy": _energy("energy", _JOULES, "J", lambda one: one.joules),
    "energy-main": _energy("energy of the download", _JOULES, "J", lambda one: one.main_j),
    "energy-tail": _energy(
        "energy of the tail", _JOULES, "J", lambda one: one.tail_j, near_zero=True
    ),
    "energy-bursts": _energy("energy of the bursts (E_na)", _JOULES, "J", lambda one: one.bursts_j),
    "energy-processor": _energy(
        "energy of the processor in the bursts (E_cpu)",
        _JOULES,
        "J",
        lambda one: one.bursts_processor_j,
        real_clock=True,
    ),
    "energy-per-byte": _energy(
        "energy per byte",
        measure("µJ/B", 0, 1e6),
        "µJ/B",
        lambda one: one.joules_per_byte * 1e6,
    ),
    "time-per-energy": _energy(
        "time per energy",
        measure("s/J", 0, 1e6),
        "s/J",
        lambda one: 1 / one.mean_w,
    ),
    "power-mean": _energy("mean power", _WATTS, "W", lambda one: one.mean_w),
    "power-p90": _energy("90th percentile of power", _WATTS, "W", lambda one: one.p90_w),
    "power-peak": _energy("peak power", _WATTS, "W", lambda one: one.peak_w),
    "cpu-p05": _processor(
        "5th percentile of processor load", _PERCENT, "%", lambda one: 100 * one.load_p05
    ),
    "cpu-median": _processor(
        "median of processor load", _PERCENT, "%", lambda one: 100 * one.load_median
    ),
    "cpu-p90": _processor(
        "90th percentile of processor load", _PERCENT, "%", lambda one: 100 * one.load_p90
    ),
    "cpu-max": _processor("most processor load", _PERCENT, "%", lambda one: 100 * one.load_max),
    "cpu-variation": _processor(
        "coefficient of variation of processor load",
        _PERCENT,
        "%",
        lambda one: _scaled(one.load_variation, 100),
    ),
    "cpu-bursts": Measure(
        "processor load in the bursts",
        _PERCENT,
        _in("%"),
        lambda run, _: _burst_load(run),
        real_clock=True,
    ),
    "cpu-integral": _processor(
        "processor time", measure("% s", 0, 1e9), "% s", lambda one: 100 * one.cpu_s
    ),
    "memory": _processor(
        "memory", measure("kB", 0, 1e9), "kB", lambda one: _scaled(one.memory_bytes, 1e-3)
    ),
    "playback": _of_workload("playback_s"),
    "interruptions": _of_workload("interruptions"),
    "page-load": _of_workload("page_load_s"),
    "page-load-from-first-byte": Measure(
        "time to load the page from its first byte on",
        _TIME,
        _time,
        lambda run, _: _from_first_byte(run),
    ),
    "round-trip": _of_workload(ROUND_TRIP),
}
