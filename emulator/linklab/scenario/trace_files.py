"""A scenario whose traces lie elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from linklab.scenario.settings import Scenario


def with_trace_files(scenario: Scenario, moved: Callable[[str, Path], Path]) -> Scenario:
    """The scenario with `moved(link, file)` instead of each trace's file."""
    links = {
        name: link
        if link.trace is None
        else replace(link, trace=replace(link.trace, file=moved(name, link.trace.file)))
        for name, link in scenario.links.items()
    }
    return replace(scenario, links=links)
