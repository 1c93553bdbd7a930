"""Reads existing run directories for commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from linklab.energy import library
from linklab.energy.model import EnergyModel
from linklab.runs import run_energy
from linklab.runs.loaded_runs import LoadedRun, Reader, found_in
from linklab.scenario import Scenario, find, ships


class EnergyModels:
    """Chooses the energy model of existing runs: `instead` for all runs if it is given, else the
    run's own. Older runs have none and use their scenario's current model."""

    def __init__(self, instead: str | None = None) -> None:
        self.instead = instead
        self._found: dict[str, EnergyModel | None] = {}

    def of_scenario(self, scenario: Scenario) -> EnergyModel | None:
        """Returns `instead`, or the model of the current scenario of this name. Raises
        ScenarioError."""
        if scenario.name not in self._found:
            self._found[scenario.name] = self._of(scenario)
        return self._found[scenario.name]

    def _of(self, scenario: Scenario) -> EnergyModel | None:
        if self.instead is None:
            if not ships(scenario.name):
                return None
            scenario = find(scenario.name)
        text = run_energy.model_for(scenario, self.instead)
        return None if text is None else library.parse(text)

    def of_run(self, run: LoadedRun) -> EnergyModel | None:
        """Returns the model of a run's energy. Raises ScenarioError."""
        own = run_energy.model_of(run.run_dir) if self.instead is None else None
        return own or self.of_scenario(run.scenario)


def read(paths: Iterable[Path], models: EnergyModels) -> list[LoadedRun]:
    """Reads the runs in directories. Raises RunDirectoryError if there are none, or incomplete
    ones."""
    reader = Reader(models.of_scenario, instead=models.instead is not None)
    return [reader.read(path) for path in found_in(paths)]
