"""Reads the tables that linklab and the Go client share: JSON files in the client's packages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from linklab.core import paths


def _file(package: str, name: str) -> Path:
    """Returns the path of a table. In a wheel all tables are in one directory."""
    if paths.INSTALLED:
        return paths.DATA / name
    return paths.DATA / "client" / "internal" / package / name


FILES: Final = (_file("schedule", "algorithms.json"), _file("energy", "link_kinds.json"))
"""The paths of the tables. The wheel and the containers copy them by name."""

ALGORITHMS, LINK_KINDS = (file.read_bytes() for file in FILES)
