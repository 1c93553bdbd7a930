"""Changes the paths of a scenario's traces. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from linklab.models.trace import Trace
from linklab.scenario.settings import Scenario


def with_trace_files(scenario: Scenario, moved: Callable[[str, Path], Path]) -> Scenario:
    """Returns the scenario with `moved(link, file)` instead of each trace's file."""
    links = {
        name: link
        if (trace := link.model(Trace)) is None
        else link.having(replace(trace, file=moved(name, trace.file)))
        for name, link in scenario.links.items()
    }
    return replace(scenario, links=links)
