"""Computes a client's figures from the rates of its links, without emulation.

Time is bytes by rate, energy is power by time. TCP, HTTP, the client and its algorithm are left out.
What this gets right is no evidence for a lab that emulates them (`skill.py`). The rates are those of
the link models under full load, with the seed of a run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from linklab.core.frames import goodput_ratio
from linklab.energy import information_base
from linklab.energy.activity import Activity, Counted
from linklab.energy.model import EnergyModel
from linklab.links.full_load import spans
from linklab.report.publication import Publication
from linklab.report.reproduction import Runs
from linklab.report.statement import RunGroup
from linklab.report.statement_kinds import EQUAL_PARTS
from linklab.runs import run_energy
from linklab.runs.clients import registry
from linklab.runs.job import Job
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.run_figures import LinkFigures, RunFigures
from linklab.runs.workload_figures import ROUND_TRIP
from linklab.scenario import Scenario

SAMPLE_S: Final = 0.5
"""The distance between two samples of the carried bytes, as in the lab."""

HORIZON_S: Final = 3600.0
"""Links that have not carried everything by then give no figures."""

ModelOf = Callable[[Scenario], EnergyModel | None]


@dataclass(frozen=True, slots=True)
class Carried:
    """What links carried by `end_s`: the payload over time for each, and their mean round trip."""

    end_s: float
    samples: dict[str, list[tuple[float, float]]]
    rtt_s: dict[str, float]

    def bytes(self, link: str) -> float:
        return self.samples[link][-1][1]


def links_of(client: str, scenario: Scenario) -> tuple[str, ...] | None:
    """Returns the links that a client uses by its definition, None if it decides by energy. Backups
    count as unused."""
    if (link := registry.link_by_definition(client, scenario.links)) is not None:
        return (link,)
    return None if registry.client_of(client).needs_energy else tuple(scenario.links)


class Arithmetic:
    """Makes runs by arithmetic. `model_of` gives a scenario's energy model."""

    def __init__(self, scenario_of: Callable[[str], Scenario], model_of: ModelOf) -> None:
        self._scenario_of, self._model_of = scenario_of, model_of
        self._carried: dict[tuple[object, ...], Carried | None] = {}

    def runs(self, cell: RunGroup, seeds: Iterable[int]) -> list[LoadedRun]:
        """Returns a cell's run for each seed with which its links carry everything."""
        made = (self._run(cell, seed) for seed in seeds)
        return [one for one in made if one is not None]

    def _run(self, cell: RunGroup, seed: int) -> LoadedRun | None:
        scenario = self._scenario_of(cell.scenario)
        links = links_of(cell.client, scenario) or self._of_least_power(scenario, seed)
        size = scenario.payload.size_bytes
        if cell.client in EQUAL_PARTS:
            parts = [self._by((one,), scenario, seed, size / len(links)) for one in links]
        else:
            parts = [self._by(links, scenario, seed, size, cell.first_s or math.inf)]
        known = [one for one in parts if one is not None]
        if len(known) < len(parts):
            return None
        figures = self._figures(scenario, known, cell.first_s)
        oracle = None if cell.first_s else self._by(tuple(scenario.links), scenario, seed, size)
        if oracle is not None:
            figures = replace(figures, efficiency=oracle.end_s / figures.download_s)
        rates = {
            name: one.bytes(name) * 8 / one.end_s / goodput_ratio(scenario.links[name].families)
            for one in known
            for name in one.samples
        }
        return LoadedRun(Path(), _job(cell, seed), scenario, figures, "", rates, cell.first_s)

    def _of_least_power(self, scenario: Scenario, seed: int) -> tuple[str, ...]:
        """Returns the links that together draw the least energy per byte (eMPTCP 3.3)."""
        every = tuple(scenario.links)
        model = self._model_of(scenario)
        found = self._by(every, scenario, seed, scenario.payload.size_bytes)
        if model is None or found is None:
            return every
        rates = {name: found.bytes(name) * 8 / found.end_s for name in every}

        def per_byte(names: tuple[str, ...]) -> float:
            used = {scenario.links[name].kind: rates[name] for name in names}
            return information_base.joules_per_byte(model, used) if any(used.values()) else math.inf

        sets = (itertools.combinations(every, n) for n in range(1, len(every) + 1))
        return min(itertools.chain.from_iterable(sets), key=per_byte)

    def _by(
        self,
        links: tuple[str, ...],
        scenario: Scenario,
        seed: int,
        size: float,
        until_s: float = math.inf,
    ) -> Carried | None:
        key = scenario.name, links, seed, size, until_s
        if key not in self._carried:
            self._carried[key] = _carried(scenario, seed, links, size, until_s)
        return self._carried[key]

    def _figures(self, scenario: Scenario, parts: Sequence[Carried], first_s: float) -> RunFigures:
        end_s = max(one.end_s for one in parts)
        carried = {name: one.bytes(name) for one in parts for name in one.samples}
        ends = {name: one.end_s for one in parts for name in one.samples}
        total = sum(carried.values())
        workload = _of_workload(scenario, parts, end_s)
        download_s = workload.get("playback_s", end_s)
        model, energy = self._model_of(scenario), None
        if model is not None:
            activities = {
                name: _activity(scenario, name, one) for one in parts for name in one.samples
            }
            energy = run_energy.of_activities(
                model, activities, 0.0, download_s, round(total), bursts=[(0.0, end_s)]
            ).figures
            if first_s:
                energy = energy.until_the_end(first_s, round(total))
        return RunFigures(
            download_s=download_s,
            goodput_bps=total * 8 / end_s,
            oracle_s=None,
            efficiency=None,
            link_delta_s=None,
            links={
                name: LinkFigures(
                    bytes=round(carried.get(name, 0)),
                    share=carried.get(name, 0) / total,
                    finish_s=ends.get(name),
                )
                for name in scenario.links
            },
            energy=energy,
            workload=workload or None,
            from_first_byte_s=workload.get("page_load_s"),
        )


def _carried(
    scenario: Scenario, seed: int, links: tuple[str, ...], size: float, until_s: float
) -> Carried | None:
    """Lets links carry `size` bytes, or for `until_s`. Returns None if they never do."""
    left = size
    sums: dict[str, float] = dict.fromkeys(links, 0.0)
    samples = {name: [(0.0, 0.0)] for name in links}
    round_trips: dict[str, float] = dict.fromkeys(links, 0.0)
    next_s = SAMPLE_S
    for span in spans(scenario, seed, links):
        rates = span.payload_bytes_per_s
        total = sum(rates.values())
        done_s = span.start_s + left / total if total else math.inf
        end_s = min(span.end_s, until_s, done_s)
        if end_s > HORIZON_S:
            return None
        length_s, is_over = end_s - span.start_s, end_s in (until_s, done_s)
        for name in links:
            sums[name] += rates[name] * length_s
            round_trips[name] += span.states[name].rtt_s * length_s
        left -= total * length_s
        if end_s >= next_s or is_over:
            for name in links:
                samples[name].append((end_s, sums[name]))
            next_s = end_s + SAMPLE_S
        if is_over:
            means = {name: value / end_s for name, value in round_trips.items()}
            return Carried(end_s, samples, means) if end_s > 0 and any(sums.values()) else None
    return None


def _of_workload(scenario: Scenario, parts: Sequence[Carried], end_s: float) -> dict[str, float]:
    """Returns the figures of a workload that follow from the time of its bytes."""
    player = scenario.workload.player
    if player is not None:
        size = scenario.payload.size_bytes
        start_s = end_s * min(1.0, player.starts_with_bytes / size)
        film_s = size * 8 / player.mean_rate_bps(size)
        return {
            "startup_s": start_s,
            "playback_s": max(start_s + film_s, end_s),
            "interruptions": float(end_s > start_s + film_s),
        }
    if scenario.workload.page is not None:
        return {"page_load_s": end_s}
    if scenario.workload.rounds is not None:
        carried = [(one.bytes(name), one.rtt_s[name]) for one in parts for name in one.samples]
        total = sum(count for count, _ in carried)
        return {ROUND_TRIP: sum(count * rtt_s for count, rtt_s in carried) / total}
    return {}


def _activity(scenario: Scenario, link: str, carried: Carried) -> Activity:
    """Returns a link's activity, as the lab's counters would show it."""
    settings = scenario.links[link]
    ratio, down = goodput_ratio(settings.families), scenario.workload.direction == "down"
    counted = (
        Counted(t_s, round(count / ratio) if down else 0, 0 if down else round(count / ratio))
        for t_s, count in carried.samples[link]
    )
    return Activity(settings.kind, tuple(counted))


def _job(cell: RunGroup, seed: int) -> Job:
    return Job(
        scenario=cell.scenario,
        client=cell.client,
        command=None,
        seed=seed,
        place="guest",
        clock="virtual",
        reason="",
        shift_s=0.0,
        started_at="",
        payload="",
        payload_sha256="",
        multilink="",
        certificate_authority="",
        certificate="",
        key="",
        versions={},
    )


def beside(publication: Publication, runs: Runs, model_of: ModelOf) -> Runs:
    """Returns runs by arithmetic beside a publication's runs, with the same cells and seeds."""
    made = Arithmetic(publication.scenario, model_of)
    stated = {cell for one in publication.statements for cell in one.cells}
    return {
        cell: made.runs(cell, [one.job.seed for one in found])
        for cell, found in runs.items()
        if cell in stated
    }
