"""Reads the plot of a run from its directory: capacity and use of each link."""

from __future__ import annotations

import os
from pathlib import Path

from linklab.core.link_kinds import KINDS, LinkKind
from linklab.core.records import FILES, LinkRecord, QueueRecord, Tail
from linklab.report import plotting
from linklab.report.plotting import Plot
from linklab.runs import job, summary
from linklab.runs.run_figures import FigureError
from linklab.scenario import Scenario


def of_run(directory: Path) -> Plot:
    """Returns the plot of a run. Raises ValueError for invalid files."""
    applied = Tail(directory, LinkRecord).read()
    states = [(state.t_s, state.link, state) for state in applied]
    of = _scenario(directory)
    direction = "down" if of is None else of.workload.direction
    sent: dict[str, list[tuple[float, int]]] = {}
    for record in Tail(directory, QueueRecord).read():
        if record.direction == direction:
            sent.setdefault(record.link, []).append((record.t_s, record.sent_bytes))
    strangers = sent.keys() - {link for _, link, _ in states}
    if states and strangers:
        raise ValueError(
            f"{directory}: {FILES[QueueRecord]} has the link {min(strangers)!r}, which "
            f"{FILES[LinkRecord]} lacks"
        )
    has_figures = os.path.lexists(directory / summary.FILE)
    end_s = _shift_s(directory) + summary.read(directory).download_s if has_figures else None
    name = directory.resolve().name
    plot = plotting.of_run(name, states, sent, end_s, _kinds(of), direction)
    if not states or plot.end_s <= 0:
        raise ValueError(
            f"{directory}: nothing was recorded of the links: there is nothing to draw"
        )
    carried = [at_end for one in sent.values() for _, at_end in one[-1:]]
    if carried and not has_figures and not any(carried):
        raise ValueError(f"{directory}: no link has carried anything{_why(directory)}")
    return plot


def _why(directory: Path) -> str:
    """Returns why a run has no figures, if its directory tells."""
    try:
        summary.figures_of(directory)
    except (FigureError, OSError) as error:
        return f": {error}"
    return ""


def _scenario(directory: Path) -> Scenario | None:
    """Returns the scenario of a run, None if the file is missing."""
    is_there = os.path.lexists(directory / job.SCENARIO_FILE)
    return job.scenario_of(directory) if is_there else None


def _kinds(of: Scenario | None) -> dict[str, LinkKind]:
    """Returns the kinds of a run's links, from its scenario, or from their names if there is none."""
    return dict(KINDS) if of is None else {name: one.kind for name, one in of.links.items()}


def _shift_s(directory: Path) -> float:
    """Returns when the run's client started, 0 without a manifest."""
    if not os.path.lexists(directory / job.FILE):
        return 0.0
    return job.read(directory).shift_s
