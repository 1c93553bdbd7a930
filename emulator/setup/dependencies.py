"""The wheel's dependencies: what runs need, and as extras the rest, as pinned in requirements.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Dependencies(MetadataHookInterface):
    """Tells hatchling the dependencies."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the pins of what base.in names, and of what pyproject.toml has as extras; `all` is all
        extras."""
        directory = Path(self.root)
        lines = Path(directory, "base.in").read_text().splitlines()
        pinned = Path(directory, "requirements.txt").read_text()
        # A package may have a pin for each of some versions of Python.
        pins: dict[str, list[str]] = {}
        for name, pin in re.findall(r"(?m)^([a-z0-9.-]+)(==.*?) \\$", pinned):
            pins.setdefault(name, []).append(f"{name}{pin}")
        extras: dict[str, list[str]] = self.config["extras"]
        optional = sorted({name for names in extras.values() for name in names})
        metadata["optional-dependencies"] = {
            extra: [pin for name in names for pin in pins[name]]
            for extra, names in {**extras, "all": optional}.items()
        }
        metadata["dependencies"] = [pin for name in lines[1:] for pin in pins[name]]
