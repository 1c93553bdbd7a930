"""Compares clients by the figures of many runs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linklab.core import statistics
from linklab.energy.account import EnergyFigures
from linklab.links import oracle
from linklab.runs.figures import (
    DOWNLOAD,
    ENERGY_FIGURES,
    RUN_FIGURES,
    EnergyFigure,
    RunFigure,
)
from linklab.runs.queue_figures import QueueFigures
from linklab.runs.run_figures import LinkFigures, RunFigures, in_order
from linklab.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Spread:
    """Holds median, extremes and sample standard deviation (0 for one value) of a metric."""

    median: float
    min: float
    max: float
    sd: float
    count: int


@dataclass(frozen=True, slots=True)
class LinkRow:
    """Holds a link's figures over all runs of a row. None if no run has the figure."""

    bytes: Spread
    share: Spread
    finish_s: Spread | None
    rtt_min_s: Spread | None
    wasted_bytes: Spread | None
    requests: Spread | None


@dataclass(frozen=True, slots=True)
class PublishedFigures:
    """Holds the published figures of a row. None if not published."""

    download_s: float
    link_delta_s: float | None = None


@dataclass(frozen=True, slots=True)
class EnergyRow:
    """Holds the energy over all runs of a row. `figures` has ENERGY_FIGURES by key, `links_j` the
    joules of each link."""

    model: str
    figures: dict[str, Spread]
    links_j: dict[str, Spread]

    def of(self, figure: EnergyFigure) -> Spread:
        """Returns a figure over all runs."""
        return self.figures[figure.key]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Holds one algorithm's runs in one scenario. `figures` has RUN_FIGURES by key, None if no run
    has the figure.

    `error_ratio` is (download_s - published_s) / published_s. `failures` are the reasons of runs
    without figures. `energy` is None without an energy model. `workload` has a workload's own
    figures by key (`workload_figures.py`). It is empty for file downloads. `queues` has the figures
    of `queue_figures.py` by link, direction and name. `traffic` has those of `traffic_figures.py` by
    flow and name. `clients` has download time and goodput of each of several clients, `shares` the
    part of each who shares a link by link and title, `jain` Jain's index of each link.
    """

    algorithm: str
    runs: int
    failures: tuple[str, ...]
    figures: dict[str, Spread | None]
    links: dict[str, LinkRow] = field(default_factory=dict)
    published_s: float | None = None
    published_link_delta_s: float | None = None
    error_ratio: float | None = None
    energy: EnergyRow | None = None
    workload: dict[str, Spread] = field(default_factory=dict)
    queues: dict[str, dict[str, dict[str, Spread]]] = field(default_factory=dict)
    traffic: dict[str, dict[str, Spread]] = field(default_factory=dict)
    clients: dict[str, dict[str, Spread]] = field(default_factory=dict)
    shares: dict[str, dict[str, Spread]] = field(default_factory=dict)
    jain: dict[str, Spread] = field(default_factory=dict)

    def of(self, figure: RunFigure) -> Spread | None:
        """Returns a figure over all runs."""
        return self.figures[figure.key]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds the algorithms of one scenario, in the order asked for.

    `oracle_s` is the median over the runs, because links differ with the seed. It is infinite if
    the links never deliver the payload. `notes` are remarks on the clients.
    """

    scenario: str
    title: str
    workload: str
    size_bytes: int
    oracle_s: float
    links: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_published(self) -> bool:
        """Whether any row has a published figure."""
        return any(row.published_s is not None for row in self.rows)

    @property
    def has_energy(self) -> bool:
        """Whether any row has energy figures."""
        return any(row.energy is not None for row in self.rows)


def spread(values: Iterable[float]) -> Spread:
    """Returns the spread of at least one finite value. Raises ValueError if there is none."""
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("no values, no spread")
    return Spread(
        median=statistics.median(numbers),
        min=min(numbers),
        max=max(numbers),
        sd=statistics.standard_deviation(numbers) if len(numbers) > 1 else 0.0,
        count=len(numbers),
    )


def _of_link(runs: Sequence[RunFigures], name: str) -> list[LinkFigures]:
    return [run.links[name] for run in runs if name in run.links]


def compare(
    scenario: Scenario,
    runs: Mapping[str, Sequence[RunFigures]],
    failures: Mapping[str, Sequence[str]] | None = None,
    published: Mapping[str, PublishedFigures] | None = None,
) -> Comparison:
    """Makes a row for each algorithm of `runs` and `failures`, with its `published` figures.

    `failures` has the reasons of runs without figures.
    """
    failed = failures or {}
    stated = published or {}
    algorithms = list(dict.fromkeys([*runs, *failed]))
    rows = tuple(
        _row(scenario, name, runs.get(name, ()), tuple(failed.get(name, ())), stated.get(name))
        for name in algorithms
    )
    used = [name for row in rows for name in row.links]
    all_runs = [run for name in algorithms for run in runs.get(name, ())]
    leasts = [run.oracle_s for run in all_runs if run.oracle_s is not None]
    return Comparison(
        scenario=scenario.name,
        title=scenario.title,
        workload=scenario.workload.name,
        size_bytes=scenario.payload.size_bytes,
        oracle_s=statistics.median(leasts) if leasts else oracle.oracle_s(scenario),
        links=tuple(dict.fromkeys([*scenario.links, *used])),
        rows=rows,
    )


def _row(
    scenario: Scenario,
    algorithm: str,
    runs: Sequence[RunFigures],
    failures: tuple[str, ...],
    published: PublishedFigures | None,
) -> ComparisonRow:
    figures = {one.key: _spread_or_none(map(one.of, runs)) for one in RUN_FIGURES}
    download = figures[DOWNLOAD.key]
    error = None
    if published is not None and download is not None:
        error = (download.median - published.download_s) / published.download_s
    names = in_order(scenario, dict.fromkeys(name for run in runs for name in run.links))
    shared = [pair for run in runs for pair in (run.shares or {}).items()]
    return ComparisonRow(
        algorithm=algorithm,
        runs=len(runs),
        failures=failures,
        figures=figures,
        links={name: _link_row(_of_link(runs, name)) for name in names},
        published_s=published.download_s if published else None,
        published_link_delta_s=published.link_delta_s if published else None,
        error_ratio=error,
        energy=_energy_row([run.energy for run in runs if run.energy is not None]),
        workload=_spreads([run.workload for run in runs if run.workload is not None]),
        queues=_queue_rows([run.queues for run in runs if run.queues is not None]),
        traffic=_by_title((one.title, one.flat()) for run in runs for one in run.traffic or []),
        clients=_by_title((one.title, one.flat()) for run in runs for one in run.clients or []),
        shares=_by_title((name, one.shares) for name, one in shared),
        jain=_spreads([{name: one.jain} for name, one in shared]),
    )


def _queue_rows(
    runs: list[dict[str, dict[str, QueueFigures]]],
) -> dict[str, dict[str, dict[str, Spread]]]:
    return {
        link: _by_title(
            (direction, one.flat()) for run in runs for direction, one in run.get(link, {}).items()
        )
        for link in dict.fromkeys(link for run in runs for link in run)
    }


def _by_title(found: Iterable[tuple[str, Mapping[str, float]]]) -> dict[str, dict[str, Spread]]:
    """Returns the spread of each figure, by title and name."""
    by_title: dict[str, list[Mapping[str, float]]] = {}
    for title, figures in found:
        by_title.setdefault(title, []).append(figures)
    return {title: _spreads(every) for title, every in by_title.items()}


def _spreads(found: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Returns the spread of each figure, by name."""
    names = dict.fromkeys(name for one in found for name in one)
    return {name: spread(one[name] for one in found if name in one) for name in names}


def _energy_row(runs: list[EnergyFigures]) -> EnergyRow | None:
    if not runs:
        return None
    names = dict.fromkeys(name for run in runs for name in run.links)
    return EnergyRow(
        model=", ".join(dict.fromkeys(run.model for run in runs)),
        figures={one.key: spread(map(one.of, runs)) for one in ENERGY_FIGURES},
        links_j={
            name: spread(run.links[name].joules for run in runs if name in run.links)
            for name in names
        },
    )


def _link_row(links: list[LinkFigures]) -> LinkRow:
    return LinkRow(
        bytes=spread(link.bytes for link in links),
        share=spread(link.share for link in links),
        finish_s=_spread_or_none(link.finish_s for link in links),
        rtt_min_s=_spread_or_none(link.rtt_min_s for link in links),
        wasted_bytes=_spread_or_none(link.wasted_bytes for link in links),
        requests=_spread_or_none(link.requests for link in links),
    )


def _spread_or_none(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return spread(known) if known else None
