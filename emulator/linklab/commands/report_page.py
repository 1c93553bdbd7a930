"""Builds a report's page from runs: groups them, and adds time series and publications'
statements.

`commands/report.py` imports this module only when a page is asked for, because its imports are
slow.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from linklab.commands.existing import EnergyModels
from linklab.commands.options import UsageError
from linklab.core import whole_file
from linklab.core.error_report import report_error
from linklab.core.records import FILES, ProcessRecord, QueueRecord, RecordError, Tail
from linklab.field.prediction import Prediction
from linklab.regression import fingerprint
from linklab.report import (
    arithmetic,
    html,
    page,
    plot_picture,
    publication,
    reproduction,
    run_plot,
)
from linklab.report.dependence_showing import Unknowns
from linklab.report.page import Group, OverTime
from linklab.report.reproduction import CheckedStatement
from linklab.report.skill import Skill
from linklab.runs import clients, job, loaded_runs, process_figures, run_energy, time_series
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.time_series import TimeSeries
from linklab.scenario import Scenario, find, ships

Predictions = dict[str, tuple[Scenario, Prediction]]

MOST_FAILED = 10
"""Failed runs of a scenario whose links the page draws."""


def report_failed_runs(found: Sequence[LoadedRun]) -> int:
    """Reports why runs have no figures. Returns their number."""
    failed = [one for one in found if one.failure]
    for one in failed:
        report_error(f"{one.run_dir}: {one.failure}")
    return len(failed)


def written(
    found: Sequence[LoadedRun],
    output: Path,
    models: EnergyModels,
    predictions: Predictions | None = None,
    unknowns: Unknowns | None = None,
) -> None:
    """Writes a page of runs and prints its path. Raises UsageError if a run occurs twice or has an
    invalid record."""
    try:
        shown, warnings = context(found, models, predictions, unknowns)
    except RecordError as error:
        raise UsageError(str(error)) from error
    for warning in warnings:
        report_error(warning)
    text = html.render(shown).encode(errors="backslashreplace")  # Paths need not be UTF-8.
    whole_file.write(output, text)
    count = f"{shown['runs']} run" + "s" * (shown["runs"] != 1)
    print(f"{output}: {count}, {len(text) / 1e6:.1f} MB", file=sys.stderr)


def context(
    found: Sequence[LoadedRun],
    models: EnergyModels,
    predictions: Predictions | None = None,
    unknowns: Unknowns | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Returns the page's context, and warnings. `predictions` are compared with recordings. `unknowns` are shown below the publications."""
    groups, warnings = grouped(found)
    over = {
        (group.title, client): _over(group, client, models)
        for group in groups
        for client in group.runs
    }
    command = ["linklab", *job.without_credentials(sys.argv[1:])]
    verdicts = _verdicts(groups)
    shown = page.context(groups, over, verdicts, warnings, command, predictions, unknowns)
    return shown, warnings


def grouped(found: Iterable[LoadedRun]) -> tuple[list[Group], list[str]]:
    """Groups runs by scenario, environment and clock. Returns warnings, too. Raises UsageError if a
    run occurs twice."""
    hashes = fingerprint.Hashes()
    variants: dict[str, dict[tuple[str, str, str], list[LoadedRun]]] = {}
    warnings, live = [], 0
    for one in found:
        if one.job.live:
            live += 1
            continue
        key = hashes.of(one.scenario), one.job.place, one.job.clock
        variants.setdefault(one.scenario.name, {}).setdefault(key, []).append(one)
    if live:
        warnings.append(f"{live} runs of a live lab are left out: they are watched, not measured")
    groups = []
    for name, by_key in variants.items():
        numbers = {key: n for n, key in enumerate(dict.fromkeys(one for one, _, _ in by_key), 1)}
        where = {(place, clock) for _, place, clock in by_key}
        if len(numbers) > 1:
            warnings.append(
                f"{len(numbers)} different scenarios are called {name}: each is shown by itself"
            )
        if len(where) > 1:
            warnings.append(
                f"{name} ran on several clocks: the runs of each are shown by themselves"
            )
        for (content, place, clock), runs in by_key.items():
            told = [str(numbers[content])] if len(numbers) > 1 else []
            told += [f"{place}, {clock} clock"] if len(where) > 1 else []
            title = f"{name} ({'; '.join(told)})" if told else name
            group = Group(title, runs[0].scenario, place, clock, {}, {}, ships(name))
            for one in sorted(runs, key=lambda one: one.job.seed):
                if one.figures is None:
                    group.failures.setdefault(one.client_name, []).append(one.failure)
                    if len(group.failed) < MOST_FAILED:
                        with contextlib.suppress(ValueError, OSError):  # The lab had no links yet.
                            drawn = plot_picture.spec(run_plot.of_run(one.run_dir))
                            group.failed.append((drawn.pop("title")["text"], drawn))
                else:
                    group.runs.setdefault(one.client_name, []).append(one)
            _check_different(group)
            known = clients.names(group.scenario.links)
            order = {client: place for place, client in enumerate(known)}
            ranked = sorted(group.runs, key=lambda client: order.get(client, len(order)))
            groups.append(replace(group, runs={client: group.runs[client] for client in ranked}))
    used = [one for group in groups for runs in group.runs.values() for one in runs]
    bare = sum(not (one.run_dir / FILES[QueueRecord]).exists() for one in used)
    if bare:
        warnings.append(
            f"{bare} of the runs lack {FILES[QueueRecord]}: nothing is known of their links over "
            "time, nor of their energy"
        )
    if warning := loaded_runs.different_builds(used):
        warnings.append(warning)
    return groups, warnings


def _check_different(group: Group) -> None:
    for client, runs in group.runs.items():
        seeds: dict[int, Path] = {}
        for one in runs:
            if one.job.seed in seeds:
                raise UsageError(
                    f"{group.title} {client}, seed {one.job.seed} is there twice: "
                    f"{seeds[one.job.seed]} and {one.run_dir}"
                )
            seeds[one.job.seed] = one.run_dir


def _over(group: Group, client: str, models: EnergyModels) -> OverTime:
    median_run = group.median_run(client)
    end_s = max(
        one.figures.download_s + one.job.shift_s for one in group.runs[client] if one.figures
    )
    step_s = time_series.step_s(end_s)
    assert median_run.figures is not None
    median_end_s = median_run.figures.download_s + median_run.job.shift_s
    direction = group.scenario.workload.direction
    rates = {
        one.job.seed: _used(
            one,
            time_series.rates_bps(
                one.run_dir, one.figures.download_s + one.job.shift_s, step_s, direction
            ),
        )
        for one in group.runs[client]
        if one.figures is not None
    }
    return OverTime(
        rates=rates,
        capacities=time_series.capacities_bps(median_run.run_dir, median_end_s, step_s, direction),
        ranges=time_series.requests(
            median_run.run_dir,
            median_run.job.shift_s,
            median_end_s,
            group.scenario.payload.size_bytes,
        ),
        step_s=step_s,
        median_seed=median_run.job.seed,
        end_s=median_end_s,
        power=_power(median_run, models),
        processes=process_figures.over_time(Tail(median_run.run_dir, ProcessRecord).read(), step_s),
    )


def _power(run: LoadedRun, models: EnergyModels) -> list[tuple[float, float, dict[str, float]]]:
    """Returns the device's power over time, empty without an energy model."""
    if run.figures is None or run.figures.energy is None:
        return []
    model = models.of_run(run)
    if model is None:
        return []
    account = run_energy.of_download(
        model,
        run.scenario,
        run.run_dir,
        Tail(run.run_dir, QueueRecord).read(),
        run.job.shift_s,
        run.figures,
    )
    return [(one.t_s, one.power_w, one.links_w) for one in account.power]


def _used(run: LoadedRun, rates: dict[str, TimeSeries]) -> dict[str, TimeSeries]:
    """Returns the time series of the links that carried the file."""
    links = run.figures.links if run.figures else {}
    return {name: series for name, series in rates.items() if name in links and links[name].bytes}


def _verdicts(
    groups: Sequence[Group],
) -> dict[str, tuple[list[CheckedStatement], Skill | None]]:
    """Checks all publications' statements about the scenarios of these runs, and judges them. Only scenarios that
    still are as they ship, or as a publication's campaign makes them, count."""
    stated = {name: publication.find(name) for name in publication.names()}
    swept = {name: one for each in stated.values() for name, one in each.swept.items()}

    def is_as_now(then: Scenario) -> bool:
        now = swept.get(then.name) or (find(then.name) if ships(then.name) else None)
        return now is not None and fingerprint.of_scenario(then) == fingerprint.of_scenario(now)

    runs = [
        one
        for group in groups
        if is_as_now(group.scenario)
        for found in group.runs.values()
        for one in found
    ]
    by_cell = reproduction.by_cell(runs)
    verdicts = {name: reproduction.check(one, by_cell) for name, one in stated.items()}
    model_of = run_energy.models()
    return {
        name: (
            checked,
            reproduction.skill(
                checked, by_cell, arithmetic.beside(stated[name], by_cell, model_of)
            ),
        )
        for name, checked in verdicts.items()
        if any(one.verdict in ("holds", "fails") for one in checked)
    }
