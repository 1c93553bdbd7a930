"""Defines what the plugin's parts share. Imports nothing else of linklab. Pure."""

from __future__ import annotations

from typing import NamedTuple

INSIDE = "LINKLAB_URL"
"""An environment variable of programs in the lab."""

PROPERTY = "linklab"
"""The name of a test's user properties that describe its runs."""


WRITTEN = "linklab-baseline"
"""The name of a test's user properties that name the baselines which it wrote."""


class Case(NamedTuple):
    """The scenario and seed of a test with the marker, and the seconds of the lab's time that each of
    its runs may take."""

    scenario: str | None = None
    seed: int = 1
    timeout: float | None = None
