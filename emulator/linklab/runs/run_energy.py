"""The energy of a run: the model that a run directory is given, and what its run cost by one.

The model goes into the run directory as it is (`energy.yaml`), so that the directory tells all by
itself. Where neither the scenario nor a command names one there is no such file, and no energy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from linklab.core.records import LinkRecord, ProcessRecord, QueueRecord, Tail
from linklab.energy import activity, library
from linklab.energy.account import Account, account
from linklab.energy.activity import Activity
from linklab.energy.model import EnergyModel, to_yaml
from linklab.runs import job
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.scenario import Scenario, ScenarioError


def model_for(scenario: Scenario, instead: str | None = None) -> str | None:
    """The model's text for a run directory: the one called `instead`, else the scenario's, or None.

    Raises ScenarioError where there is no such model, or it does not know a link of the scenario.
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


def model_of(run_dir: Path) -> EnergyModel | None:
    """The model in a run directory, None where there is none. Raises ScenarioError."""
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
    """What a run in the lab that brought so much cost. Raises FigureError where its records do not say, and
    RecordError."""
    states = Tail(run_dir, LinkRecord).read()
    processes = Tail(run_dir, ProcessRecord).read() if model.processor_mw else []
    kinds = {name: link.kind for name, link in scenario.links.items()}
    activities = activity.of_lab(queues, states, kinds)
    processor = [(one.t_s, one.cpu_s) for one in processes if one.process == "client"]
    return of_activities(model, activities, start_s, download_s, payload_bytes, processor)


def of_download(
    model: EnergyModel,
    scenario: Scenario,
    run_dir: Path,
    queues: list[QueueRecord],
    shift_s: float,
    figures: RunFigures,
) -> Account:
    """What the whole of a run in the lab cost. Raises as `of_lab`."""
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
) -> Account:
    """What a run cost by what its links did. `processor` is the processor time that the client had
    used until a time. Raises FigureError where that is no download that the model knows."""
    try:
        return account(
            model,
            activities,
            start_s=start_s,
            end_s=start_s + download_s,
            payload_bytes=payload_bytes,
            processor=processor,
        )
    except ValueError as error:
        raise FigureError(str(error)) from error
