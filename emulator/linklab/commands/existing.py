"""How commands read run directories that are there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from linklab.energy import library
from linklab.energy.model import EnergyModel
from linklab.runs import run_energy
from linklab.runs.evidence import Evidence, Reader, found_in
from linklab.scenario import find, ships

ModelOf = Callable[[str], EnergyModel | None]
"""An energy model for the runs of a scenario, by its name."""


def read(paths: Iterable[Path], model_of: ModelOf) -> list[Evidence]:
    """The runs in directories; EvidenceError where there are none, or half ones."""
    reader = Reader(model_of)
    return [reader.read(path) for path in found_in(paths)]


def energy_model_now(instead: str | None) -> ModelOf:
    """The energy model of a scenario as it is now, which older runs do not name, or another."""

    @functools.cache
    def model_of(name: str) -> EnergyModel | None:
        if not ships(name):
            return None
        text = run_energy.model_for(find(name), instead)
        return None if text is None else library.parse(text)

    return model_of
