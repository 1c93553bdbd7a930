"""Computes the energy of the run in a directory, from the lab or from multilink on hardware."""

from __future__ import annotations

import os
from pathlib import Path

from linklab.core import records
from linklab.core.link_kinds import KINDS, LinkKind, devices, either, kind_of
from linklab.core.records import ClientRecord, QueueRecord, Tail
from linklab.energy import activity
from linklab.energy.account import Account
from linklab.energy.model import EnergyModel
from linklab.runs import job, run_energy, summary
from linklab.runs.run_figures import ClientSummary, FigureError


def of_directory(run_dir: Path, model: EnergyModel | None = None) -> Account:
    """Computes the energy of the run in a directory, by `model` or by the run's own model. Raises
    FigureError, ScenarioError, OSError."""
    if not run_dir.is_dir():
        raise FigureError(f"{run_dir}: there is no such directory")
    used = model or run_energy.model_of(run_dir)
    if used is None:
        raise FigureError(f"{run_dir}: names no energy model; needed: --energy-model")
    if not os.path.lexists(run_dir / job.FILE):
        return _of_client(used, run_dir)
    scenario, made = job.scenario_of(run_dir), job.read(run_dir)
    queues = Tail(run_dir, QueueRecord).read()
    figures = summary.figures_of(run_dir)
    return run_energy.of_download(used, scenario, run_dir, queues, made.shift_s, figures)


def _of_client(model: EnergyModel, run_dir: Path) -> Account:
    client = records.document(run_dir / "client.json", ClientSummary)
    if client.outcome != "complete":
        raise FigureError(f"{run_dir}: the download is {client.outcome}")
    events = Tail(run_dir, ClientRecord).read()
    if not any(event.event == "sample" for event in events):
        raise FigureError(f"{run_dir}: client.jsonl has no samples of bytes per link")
    activities = activity.of_client(events, _kinds(client, run_dir))
    return run_energy.of_activities(
        model, activities, 0.0, client.download_ns / 1e9, client.carried_bytes
    )


def _kinds(client: ClientSummary, run_dir: Path) -> dict[str, LinkKind]:
    kinds = {}
    for name, link in client.links.items():
        kind = kind_of(name, link.device)
        if kind is None:
            titles = either(one.title for one in KINDS.values())
            known = either(devices(KINDS.values()))
            raise FigureError(
                f"{run_dir}: link {name!r} of {link.device!r}: is it {titles}? "
                f"Links called {either(KINDS)}, or devices such as {known}, tell"
            )
        kinds[name] = kind
    return kinds
