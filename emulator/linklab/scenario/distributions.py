"""Defines the key `distributions`: a scenario's own delay distributions, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linklab.models import delay_tables
from linklab.models.delay_tables import DelayTable
from linklab.models.impairments import DISTRIBUTION_NAME
from linklab.schema import document
from linklab.schema.document import Limits
from linklab.schema.mapping import Keys, Mapping


@dataclass(frozen=True, slots=True)
class DelayDistribution:
    """A delay distribution of the user's: its file and its table."""

    file: Path
    table: DelayTable


@dataclass(frozen=True, slots=True)
class DistributionMapping:
    """Writes the mapping of distributions by name. `reading.py` reads it, because it finds files."""

    allowed: str = "files in netem's form by name: whole numbers, 8192 for one jitter"

    def read(self, mapping: Mapping, key: str) -> Any:
        raise NotImplementedError

    def write(self, distributions: dict[str, DelayDistribution]) -> dict[str, str]:
        """Returns the mapping of files for the scenario's file."""
        return {name: str(one.file) for name, one in distributions.items()}


def read(top: Mapping, key: str, base: Path | None) -> dict[str, DelayDistribution]:
    """Reads the tables that a scenario's file names, relative to `base`. Raises ScenarioError."""
    if not top.has(key):
        return {}
    named = top.sub(key, Keys((), named=DISTRIBUTION_NAME.parse))
    found = {}
    for name in named.values:
        if name in delay_tables.NAMES:
            named.fail(name, "is a distribution without a file; allowed: another name")
        shown = named.get(name, str.strip)
        file = (base or Path()) / shown
        try:
            text = document.read(file, shown, Limits(delay_tables.MOST_BYTES, 0))
            found[name] = DelayDistribution(file, delay_tables.parse(text, shown))
        except ValueError as error:
            named.fail(name, str(error))
    return found
