"""Changes the paths of the files that a scenario names: traces and delay distributions. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from linklab.models.trace import Trace
from linklab.scenario.settings import Scenario


def with_files(scenario: Scenario, moved: Callable[[str, Path], Path]) -> Scenario:
    """Returns the scenario with `moved(owner, file)` instead of each file.

    The owner of a trace is its link, that of a delay distribution `distribution-NAME`.
    """
    links = {
        name: link
        if (trace := link.model(Trace)) is None
        else link.having(replace(trace, file=moved(name, trace.file)))
        for name, link in scenario.links.items()
    }
    distributions = {
        name: replace(one, file=moved(f"distribution-{name}", one.file))
        for name, one in scenario.distributions.items()
    }
    return replace(scenario, links=links, distributions=distributions)
