"""Gives a run directory its energy model, and computes a run's energy.

The model is copied into the run directory (`energy.yaml`), so that the directory is self-contained.
If neither the scenario nor the command names a model, there is no such file and no energy.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from linklab.core.records import FILES, BurstRecord, LinkRecord, ProcessRecord, QueueRecord, Tail
from linklab.energy import activity, library
from linklab.energy.account import Account, account
from linklab.energy.activity import Activity
from linklab.energy.model import EnergyModel, to_yaml
from linklab.runs import job
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.scenario import Scenario, ScenarioError
from linklab.scenario.workload import UPLOAD, WHOLE_FILE


def model_for(scenario: Scenario, instead: str | None = None) -> str | None:
    """Returns the text of the model `instead`, else of the scenario's model, None if there is
    neither.

    Raises ScenarioError if there is no such model, or it lacks a kind of link in the scenario.
    """
    base = None if instead is not None or scenario.path is None else scenario.path.parent
    name = scenario.energy if instead is None else instead
    if name is None:
        return None
    model = library.get(name, base)
    if unknown := model.unknown(link.kind for link in scenario.links.values()):
        raise ScenarioError(
            f"{scenario.name}: energy: the model {model.name} does not know "
            f"{', '.join(unknown)}; allowed: a model that does"
        )
    return to_yaml(model)


def models(instead: str | None = None) -> Callable[[Scenario], EnergyModel | None]:
    """Returns a function that reads the model of a scenario, as `model_for` chooses it."""
    read = functools.cache(library.parse)

    def of(scenario: Scenario) -> EnergyModel | None:
        text = model_for(scenario, instead)
        return None if text is None else read(text)

    return of


def model_of(run_dir: Path) -> EnergyModel | None:
    """Returns the model in a run directory, None if there is none. Raises ScenarioError."""
    if not os.path.lexists(run_dir / job.ENERGY_FILE):
        return None
    return library.load(run_dir / job.ENERGY_FILE, any_name=True)


def of_lab(
    model: EnergyModel,
    scenario: Scenario,
    run_dir: Path,
    queues: list[QueueRecord],
    *,
    start_s: float,
    download_s: float,
    payload_bytes: int,
) -> Account:
    """Computes the energy of a run in the lab that delivered `payload_bytes` in `download_s`.
    Raises FigureError if the records are insufficient, and RecordError."""
    states = Tail(run_dir, LinkRecord).read()
    processes = Tail(run_dir, ProcessRecord).read() if model.processor_mw else []
    kinds = {name: link.kind for name, link in scenario.links.items()}
    activities = activity.of_lab(queues, states, kinds)
    processor = [(one.t_s, one.cpu_s) for one in processes if one.process == "client"]
    times = bursts(scenario, run_dir, start_s, start_s + download_s)
    return of_activities(model, activities, start_s, download_s, payload_bytes, processor, times)


def bursts(
    scenario: Scenario, run_dir: Path, start_s: float, end_s: float
) -> list[tuple[float, float]] | None:
    """Returns the times in which packets came or went. None if the run did not record them. A file's
    download or upload is one burst."""
    if scenario.workload.name in (WHOLE_FILE, UPLOAD):
        return [(start_s, end_s)]
    if not os.path.lexists(run_dir / FILES[BurstRecord]):
        return None
    return [(one.t_s, one.t_s + one.length_s) for one in Tail(run_dir, BurstRecord).read()]


def of_download(
    model: EnergyModel,
    scenario: Scenario,
    run_dir: Path,
    queues: list[QueueRecord],
    shift_s: float,
    figures: RunFigures,
) -> Account:
    """Computes the energy of a whole run in the lab. Raises as `of_lab`."""
    return of_lab(
        model,
        scenario,
        run_dir,
        queues,
        start_s=shift_s,
        download_s=figures.download_s,
        payload_bytes=figures.carried_bytes,
    )


def of_activities(
    model: EnergyModel,
    activities: dict[str, Activity],
    start_s: float,
    download_s: float,
    payload_bytes: int,
    processor: Sequence[tuple[float, float]] = (),
    bursts: Sequence[tuple[float, float]] | None = None,
) -> Account:
    """Computes the energy from the links' activities. `processor` has pairs of a time and the
    client's processor seconds until then, `bursts` the times of packets, None if unknown. Raises
    FigureError if the model does not cover such a download."""
    try:
        return account(
            model,
            activities,
            start_s=start_s,
            end_s=start_s + download_s,
            payload_bytes=payload_bytes,
            processor=processor,
            bursts=bursts,
        )
    except ValueError as error:
        raise FigureError(str(error)) from error
