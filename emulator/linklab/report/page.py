"""Builds the context of the report's HTML page: first the answer, then the details. Pure.

Texts from a run directory are untrusted. The template escapes them, and charts get them as data,
never inside a script or an expression.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linklab.core import statistics
from linklab.core.statistics import LEAST_VALUES, Interval
from linklab.energy.account import EnergyFigures
from linklab.field.prediction import Prediction
from linklab.report import charts, reproduction_showing
from linklab.report.charts import Spec
from linklab.report.reproduction import CheckedStatement
from linklab.report.skill import Skill
from linklab.runs import queue_figures, traffic_figures
from linklab.runs.figures import Column, RunFigure, figures_in
from linklab.runs.job import SCENARIO_FILE
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.one_window import in_one_window
from linklab.runs.process_figures import ONCE_A_SECOND, Usage
from linklab.runs.run_figures import ProcessFigures, RunFigures
from linklab.runs.time_series import Range, TimeSeries
from linklab.runs.workload_figures import of_workload
from linklab.scenario import Scenario

_COLUMNS = figures_in(lambda one: one.page)
"""The columns of a scenario's table, behind the download times."""


@dataclass(frozen=True)
class Group:
    """Holds the runs of one scenario in one environment on one clock. Runs of a different scenario
    with the same name form a group of their own, told apart by `title`. `runs` have figures.
    `failures` say why other runs have none, `failed` has charts of their links. `ships` tells whether
    the scenario's name is enough to find it."""

    title: str
    scenario: Scenario
    place: str
    clock: str
    runs: dict[str, list[LoadedRun]]
    failures: dict[str, list[str]] = field(default_factory=dict)
    ships: bool = True
    failed: list[tuple[str, Spec]] = field(default_factory=list)

    def downloads(self, client: str) -> list[float]:
        """Returns the download times of a client, in the order of seeds."""
        return [one.figures.download_s for one in self.runs[client] if one.figures is not None]

    @property
    def downloaders(self) -> list[str]:
        """Lists the clients that delivered the whole file in every run. Times of other clients
        cannot be compared."""
        return [
            client
            for client, found in self.runs.items()
            if all(map(self._delivered_whole_file, found))
        ]

    def _delivered_whole_file(self, run: LoadedRun) -> bool:
        figures = run.figures
        if figures is None or figures.goodput_bps is None:
            return False
        return figures.carried_bytes == self.scenario.payload.size_bytes

    def seeds(self, client: str) -> list[int]:
        return [one.job.seed for one in self.runs[client]]

    @functools.cached_property
    def energies(self) -> dict[str, list[tuple[int, float, EnergyFigures]]]:
        """Returns seed, download time and energy of each client's runs with an energy model. The
        phone's share counts for the same time in all of them."""
        runs = [
            (client, one.job.seed, one.figures)
            for client, found in self.runs.items()
            for one in found
            if one.figures is not None
        ]
        counted = in_one_window((seed, figures) for _, seed, figures in runs)
        energies: dict[str, list[tuple[int, float, EnergyFigures]]] = {one: [] for one in self.runs}
        for (client, seed, _), one in zip(runs, counted, strict=True):
            if one.energy is not None:
                energies[client].append((seed, one.download_s, one.energy))
        return energies

    def process_figures(self, client: str) -> dict[str, list[ProcessFigures]]:
        """Returns what each process of a client's runs used, from samples once a second (thesis
        3.4). Empty in virtual time."""
        found: dict[str, list[ProcessFigures]] = {}
        for one in self.runs[client]:
            for process, looked in ((one.figures and one.figures.processes) or {}).items():
                if ONCE_A_SECOND in looked:
                    found.setdefault(process, []).append(looked[ONCE_A_SECOND])
        return found

    def median_run(self, client: str) -> LoadedRun:
        """Returns the run whose download time is nearest to the median."""
        median_s = statistics.median(self.downloads(client))
        return min(
            self.runs[client],
            key=lambda one: abs(one.figures.download_s - median_s) if one.figures else float("inf"),
        )


@dataclass(frozen=True)
class OverTime:
    """Holds the time series of one client's runs: link rates of each run by seed. Capacity,
    requests, power (time, W, W per link) and processes are of the median run, which ended at
    `end_s`."""

    rates: dict[int, dict[str, TimeSeries]]
    capacities: dict[str, TimeSeries]
    ranges: list[Range]
    step_s: float
    median_seed: int
    end_s: float
    power: list[tuple[float, float, dict[str, float]]]
    processes: dict[str, Usage]


NOTHING = Interval(0.9995, 1 / 0.9995)
"""Ratios that are 0.0 % on the page. A paced workload takes as long with every client."""


@dataclass(frozen=True)
class Answer:
    """Holds the winner of a scenario. `ratio` is the winner's median divided by the next one's.
    `runs` is the least number of runs. `interval` is the ratio's confidence interval, None if there
    are too few runs."""

    scenario: str
    winner: str
    median_s: float
    next_best: str
    ratio: float | None
    interval: Interval | None
    runs: int

    @property
    def words(self) -> str:
        """Says whether the difference is more than noise."""
        if self.ratio is None:
            return "nobody else ran"
        if self.interval is None:
            return "one run: no telling" if self.runs == 1 else "too few runs to tell"
        if NOTHING.holds(self.interval.low) and NOTHING.holds(self.interval.high):
            return "no difference"
        return "yes" if self.interval.high < 1 else "not clear"

    @property
    def is_clear(self) -> bool:
        return self.words == "yes"


def answer(group: Group) -> Answer | None:
    """Finds the winner of a group. None if no client delivered the whole file."""
    medians = {client: statistics.median(group.downloads(client)) for client in group.downloaders}
    if not medians:
        return None
    ranked = sorted(medians, key=lambda client: medians[client])
    winner = ranked[0]
    if len(ranked) == 1:
        runs = len(group.runs[winner])
        return Answer(group.title, winner, medians[winner], "", None, None, runs)
    second = ranked[1]
    runs = min(len(group.runs[client]) for client in (winner, second))
    interval = ratio_interval(group, winner, second) if runs >= LEAST_VALUES else None
    ratio = medians[winner] / medians[second]
    return Answer(group.title, winner, medians[winner], second, ratio, interval, runs)


def ratio_interval(group: Group, client: str, other: str) -> Interval:
    """Returns the confidence interval of the ratio of two medians, of at least LEAST_VALUES runs
    each. Runs with the same seeds are paired."""
    return statistics.median_ratio_interval(
        group.downloads(client),
        group.downloads(other),
        paired=group.seeds(client) == group.seeds(other),
    )


@dataclass(frozen=True)
class Chart:
    """Holds a chart: its name, title, note and specification."""

    name: str
    title: str
    note: str
    spec: Spec

    @property
    def json(self) -> str:
        """Returns the specification as JSON that cannot end the script element it stands in."""
        text = json.dumps(self.spec, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        for char in "<>&\u2028\u2029":
            text = text.replace(char, f"\\u{ord(char):04x}")
        return text


def context(
    groups: Sequence[Group],
    over: Mapping[tuple[str, str], OverTime],
    verdicts: Mapping[str, tuple[Sequence[CheckedStatement], Skill | None]],
    warnings: Sequence[str],
    command: Sequence[str],
    predictions: Mapping[str, tuple[Scenario, Prediction]] | None = None,
    unknowns: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns the template's context. `over` is keyed by group title and client, `verdicts` by
    publication, `predictions` by recording. `command` is the command that made the report."""
    whole = [group for group in groups if group.runs]
    clients = list(dict.fromkeys(client for group in whole for client in group.runs))
    return {
        "runs": sum(len(found) for group in groups for found in group.runs.values()),
        "failed": sum(len(found) for group in groups for found in group.failures.values()),
        "warnings": warnings,
        "least_runs": LEAST_VALUES,
        "answers": [found for group in whole if (found := answer(group)) is not None],
        "heat": _heat(whole, clients),
        "groups": [_section(index, group, over) for index, group in enumerate(groups)],
        "publications": [_published(name, *found) for name, found in verdicts.items()],
        "unknowns": unknowns,
        "command": shlex.join(command),
        "predictions": [
            _prediction(source, scenario, one)
            for source, (scenario, one) in (predictions or {}).items()
        ],
        "versions": _versions(groups),
    }


def all_charts(context_: Mapping[str, Any]) -> list[Chart]:
    """Lists all charts of a context, in the order of the page."""
    found = []
    for group in context_["groups"]:
        found += [one for one in (group["times"], group["energy"], group["loads"]) if one]
        found += [one for part in group["time_series"] for one in part["charts"]]
    return found + [one["chart"] for one in context_["predictions"]]


def _prediction(source: str, scenario: Scenario, one: Prediction) -> dict[str, Any]:
    """Returns the section that compares a recorded download with the lab's."""
    return {
        "source": source,
        "one": one,
        "notes": scenario.description,
        "chart": Chart(
            f"{source}/predicted",
            f"{source}: throughput of each link",
            "thick as recorded, dashed in the lab",
            charts.predicted(scenario, one.links),
        ),
    }


def _heat(groups: Sequence[Group], clients: Sequence[str]) -> dict[str, Any]:
    """Returns the table of efficiencies. Each row and each column has one: players have none."""
    found = {
        (group.title, client): efficiency
        for group in groups
        for client in clients
        if (efficiency := _efficiency(group, client)) is not None
    }
    having = {client for _, client in found}
    columns = [client for client in clients if client in having]
    rows = [
        {"title": title, "cells": [found.get((title, client)) for client in columns]}
        for title in dict.fromkeys(title for title, _ in found)
    ]
    return {"clients": columns, "rows": rows}


def _efficiency(group: Group, client: str) -> float | None:
    return _median(one.figures.efficiency for one in group.runs.get(client, ()) if one.figures)


def _section(index: int, group: Group, over: Mapping[tuple[str, str], OverTime]) -> dict[str, Any]:
    intervals = {
        client: statistics.median_interval(downloads) if len(downloads) >= LEAST_VALUES else None
        for client in group.runs
        for downloads in [group.downloads(client)]
    }
    paired = {
        client: list(zip(group.seeds(client), group.downloads(client), strict=True))
        for client in group.runs
    }
    best = answer(group)
    return {
        "id": f"s{index}",
        "title": group.title,
        "words": group.scenario.title,
        "source": group.scenario.source,
        "size": f"{group.scenario.payload.size_bytes / 1e6:g} MB",
        "figures": [column.heading for _, column in _COLUMNS],
        "own": [figure.title for figure in of_workload(group.scenario.workload.name).values()],
        "rows": [_row(group, client, intervals[client]) for client in group.runs],
        "matrix": _matrix(group),
        "winner": best.winner if best else None,
        "failures": [(client, why) for client, found in group.failures.items() for why in found],
        "failed": [
            Chart(
                f"{group.title}/failed-{number}", run, "what its links could carry, and did", spec
            )
            for number, (run, spec) in enumerate(group.failed, 1)
        ],
        "seeds": _seeds(sorted({seed for client in group.runs for seed in group.seeds(client)})),
        "repeat": _repeat(group),
        "times": Chart(
            f"{group.title}/times", "Download times", "", charts.times(paired, intervals)
        )
        if group.runs
        else None,
        "energy": _energy(group),
        "clock": group.clock,
        "place": group.place,
        "processes": _process_rows(group),
        "loads": _loads(group),
        "queues": _queue_rows(group),
        "traffic": _traffic_rows(group),
        "shares": _share_rows(group),
        "model": ", ".join(_models(group)),
        "counted_alike": len(_models(group)) < 2,
        "time_series": [
            part
            for client in group.runs
            if (one := over.get((group.title, client))) is not None
            for part in [_over(group, client, one)]
        ],
    }


def _models(group: Group) -> list[str]:
    """Lists the energy models that the group's runs used."""
    return list(dict.fromkeys(one.model for runs in group.energies.values() for _, _, one in runs))


def _energy(group: Group) -> Chart | None:
    """Returns the chart of time and energy, None unless all runs used the same energy model."""
    found = {
        client: [(seed, time_s, one.joules) for seed, time_s, one in group.energies[client]]
        for client in group.downloaders
    }
    known = {client: points for client, points in found.items() if points}
    if not known or len(_models(group)) > 1:
        return None
    return Chart(f"{group.title}/energy", "Energy against time", "", charts.energies(known))


def _process_rows(group: Group) -> list[dict[str, Any]]:
    """Returns the processor and memory use of client and server, medians over runs."""
    rows = []
    for client in group.runs:
        for process, runs in group.process_figures(client).items():
            sizes = [one.memory_bytes for one in runs if one.memory_bytes is not None]
            areas = [one.memory_integral_byte_s for one in runs if one.memory_integral_byte_s]
            rows.append(
                {
                    "client": client,
                    "process": process,
                    "p05": statistics.median(100 * one.load_p05 for one in runs),
                    "p50": statistics.median(100 * one.load_median for one in runs),
                    "p90": statistics.median(100 * one.load_p90 for one in runs),
                    "cpu_s": statistics.median(one.cpu_s for one in runs),
                    "memory": statistics.median(sizes) / 1e6 if sizes else None,
                    "area": statistics.median(areas) / 1e6 if areas else None,
                }
            )
    return rows


def _queue_rows(group: Group) -> list[dict[str, Any]]:
    """Returns the figures of the queues that had packets, medians over runs."""
    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for client, runs in group.runs.items():
        for run in runs:
            for link, queues in ((run.figures and run.figures.queues) or {}).items():
                for direction, one in queues.items():
                    if one.sojourn is not None:
                        found.setdefault((client, link, direction), []).append(one.flat())
    return _medians(("client", "link", "direction"), queue_figures.NAMES, found)


def _traffic_rows(group: Group) -> list[dict[str, Any]]:
    """Returns the figures of the flows of other hosts, medians over runs."""
    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for client, runs in group.runs.items():
        for run in runs:
            for one in (run.figures and run.figures.traffic) or []:
                found.setdefault((client, one.title), []).append(one.flat())
    return _medians(("client", "flow"), traffic_figures.NAMES, found)


def _medians(
    titles: tuple[str, ...],
    names: Iterable[str],
    found: Mapping[tuple[str, ...], Sequence[Mapping[str, float]]],
) -> list[dict[str, Any]]:
    """Returns a row for each key of `found`: its parts by title, and the median of each figure."""
    return [
        {
            **dict(zip(titles, key, strict=True)),
            **{name: _median(one.get(name) for one in known) for name in names},
        }
        for key, known in found.items()
    ]


def _share_rows(group: Group) -> list[dict[str, Any]]:
    """Returns how those who use a link share it, and clients' times; medians over runs."""
    rows = []
    for client, loaded in group.runs.items():
        runs = [run.figures for run in loaded if run.figures is not None]
        for link in dict.fromkeys(link for run in runs for link in run.shares or {}):
            known = [run.shares[link] for run in runs if run.shares and link in run.shares]
            parts = [
                {
                    "who": who,
                    "time": _median(
                        one.download_s
                        for run in runs
                        for one in run.clients or ()
                        if one.title == who
                    ),
                    "rate": _median(one.rates_bps.get(who) for one in known),
                    "share": _median(one.shares.get(who) for one in known),
                }
                for who in dict.fromkeys(who for one in known for who in one.rates_bps)
            ]
            jain = _median(one.jain for one in known)
            rows.append({"client": client, "link": link, "jain": jain, "parts": parts})
    return rows


def _loads(group: Group) -> Chart | None:
    looked = {client: found for client in group.runs if (found := group.process_figures(client))}
    if not looked:
        return None
    return Chart(f"{group.title}/processor", "Processor", "", charts.loads(looked))


def _over(group: Group, client: str, one: OverTime) -> dict[str, Any]:
    scenario = group.scenario
    made: list[Chart] = []

    def add(name: str, title: str, note: str, spec: Spec) -> None:
        made.append(Chart(f"{group.title}/{client}/{name}", f"{client}: {title}", note, spec))

    of_seed = f"of seed {one.median_seed}"
    if any(series for links in one.rates.values() for series in links.values()):
        add(
            "rates",
            "throughput of each link",
            f"every run thin, their median thick; dashed what the links {of_seed} could have carried",
            charts.link_rates(scenario, one.rates, one.capacities, one.step_s),
        )
    if one.ranges:
        outcomes = _outcomes(one.ranges, group.median_run(client).figures)
        add("requests", f"requests {of_seed}", outcomes, charts.requests(scenario, one.ranges))
    if one.power:
        note = f"by {', '.join(_models(group))}; after the red line it is tail"
        add("power", f"power {of_seed}", note, charts.powers(scenario, one.power, one.end_s))
    loads = {name: _times(100, usage.loads) for name, usage in one.processes.items()}
    memory = {name: _times(1e-6, usage.memory_bytes) for name, usage in one.processes.items()}
    for name, unit, found in (("processor", "% of a core", loads), ("memory", "MB", memory)):
        if any(found.values()):
            add(name, f"{name} {of_seed}", "", charts.processes(found, unit))
    return {"client": client, "charts": made}


def _times(factor: float, series: TimeSeries) -> TimeSeries:
    return [(t, factor * value) for t, value in series]


def _outcomes(ranges: Sequence[Range], figures: RunFigures | None) -> str:
    """Describes the outcomes of a run's requests."""
    counts = {outcome: sum(one.outcome == outcome for one in ranges) for outcome in charts.OUTCOMES}
    said = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    if figures is not None and figures.wasted_bytes is not None:
        said.append(f"{figures.wasted_bytes / 1e6:.1f} MB wasted")
    return ", ".join(said)


def _row(group: Group, client: str, interval: Interval | None) -> dict[str, Any]:
    figures = [one.figures for one in group.runs[client] if one.figures is not None]
    energies = [one.joules for _, _, one in group.energies[client]]
    return {
        "client": client,
        "runs": len(figures),
        "median": statistics.median(one.download_s for one in figures),
        "interval": interval,
        "figures": [_cell(figure, column, figures) for figure, column in _COLUMNS],
        "energy": _median(energies if len(_models(group)) == 1 else []),
        "own": [
            "-" if median is None else figure.text(median)
            for key, figure in of_workload(group.scenario.workload.name).items()
            for median in [_median(one.workload.get(key) for one in figures if one.workload)]
        ],
    }


def _cell(figure: RunFigure, column: Column, runs: Sequence[RunFigures]) -> tuple[str, str]:
    """Returns the median of a figure as text, and its unit."""
    median = _median(map(figure.of, runs))
    if median is None:
        return "-", ""
    value = f"{median / figure.unit.base:.{column.digits}f}"
    return value, figure.unit.symbol if column.with_unit else ""


def _median(values: Iterable[float | None]) -> float | None:
    """Returns the median of the known values, None if there are none."""
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None


def _matrix(group: Group) -> list[tuple[str, list[float | None]]]:
    """Returns each median in percent of each other."""
    medians = {client: statistics.median(group.downloads(client)) for client in group.downloaders}
    found = statistics.comparison_matrix(medians)
    return [(row, [found[row].get(column) for column in medians]) for row in medians]


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _repeat(group: Group) -> str:
    """Returns the command that repeats a group's runs, "" if none can. A scenario that does not ship
    is in a run directory, in a file of another name."""
    known = [client for client, found in group.runs.items() if found[0].job.client is not None]
    seeds = [seed for client in known for seed in group.seeds(client)]
    if not seeds:
        return ""
    name = group.scenario.name
    words = ["linklab", "compare", name if group.ships else f"{name}.yaml", "-a", ",".join(known)]
    words += ["--seed", str(min(seeds)), "--runs", str(max(seeds) - min(seeds) + 1)]
    if group.place == "host":
        words += ["--place", "host"]
    elif group.clock == "real":
        words += ["--clock", "real"]
    if group.ships:
        return shlex.join(words)
    copied = str(group.runs[known[0]][0].run_dir / SCENARIO_FILE)
    return f"{shlex.join(['cp', copied, f'{name}.yaml'])} && {shlex.join(words)}"


def _versions(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Lists the versions that made the runs, several where they differ."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for runs in group.runs.values():
            for one in runs:
                for name, version in one.job.versions.items():
                    found.setdefault(name, {})[version] = None
    return [(name, ", ".join(versions)) for name, versions in found.items()]


def _published(
    name: str, checked: Sequence[CheckedStatement], skill: Skill | None
) -> dict[str, Any]:
    rows = [
        {
            "title": one.statement.title,
            "words": one.statement.words,
            "source": one.statement.source,
            "kind": one.statement.kind,
            "published": one.statement.expected.text,
            "measured": reproduction_showing.measured_text(one),
            "interval": reproduction_showing.interval(one),
            "verdict": reproduction_showing.verdict(one),
            "holds": one.verdict == "holds",
            "reasons": reproduction_showing.reasons(table) if one is table[-1] else [],
        }
        for table in reproduction_showing.tables(checked)
        for one in table
    ]
    return {
        "name": name,
        "rows": rows,
        "summary": "\n".join(reproduction_showing.summary(checked, skill)),
    }
