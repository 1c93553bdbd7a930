"""Keeps accepted figures in a file beside the test, in the format of `linklab regress`.

`test_x.py::test_fast` has `__linklab__/test_x.test_fast.yaml`, with a line for each scenario,
client and seed.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pytest

from linklab.analysis.run import Run
from linklab.api.errors import UsageError
from linklab.core import locks, whole_file
from linklab.regression import baseline, figures, fingerprint, verdict
from linklab.regression.baseline import Baseline
from linklab.regression.figures import FIGURES, Bound, Cell, Values
from linklab.regression.fingerprint import Fingerprint
from linklab.regression.suite import DEFAULT_BOUNDS
from linklab.regression.verdict import Status
from linklab.testing.guest import no_verdict

FOLDER = "__linklab__"
"""The directory of baselines beside a test."""

_REASON = "pytest --linklab-update"

_HEADING = """\
# What the downloads of a test came to when they were last accepted.
# Made by `pytest --linklab-update`: do not edit.
"""


def place(file: Path, test: pytest.Item) -> Path:
    """Returns the path of a test's baseline. All cases of a test share one. Pure."""
    name = test.nodeid.partition("::")[2].partition("[")[0].replace("::", ".")
    return file.parent / FOLDER / f"{file.stem}.{name}.yaml"


def check(path: Path, run: Run, bounds: Mapping[str, str]) -> None:
    """Raises AssertionError if the run is worse than its baseline. Ends the test if there is none,
    or if it says nothing about this guest and toolchain. Raises UsageError, BaselineError."""
    __tracebackhide__ = True
    cell, now, prints = _of(run)
    allowed = _bounds(bounds)
    old = baseline.load(path) if path.exists() else None
    if old is None or cell not in old.cells:
        raise AssertionError(f"{path}: no baseline of {cell}; make it with --linklab-update")
    if different := fingerprint.differences(_only(old.fingerprint, cell.scenario), prints):
        no_verdict(
            f"no verdict: {path.name} was made with other programs or another scenario; what "
            f"differs says nothing about the client. Make it anew with --linklab-update: "
            f"{'; '.join(different)}"
        )
    found = verdict.deviations(old.cells[cell], now, allowed)
    if verdict.status(found) is Status.WORSE:
        worse = "; ".join(str(one) for one in found if one.worse)
        raise AssertionError(f"{cell} is worse than its baseline: {worse}\nbaseline: {path}")


def update(path: Path, run: Run) -> None:
    """Makes the run's figures its baseline. Figures of another guest or scenario are dropped. Raises
    UsageError, BaselineError, OSError."""
    __tracebackhide__ = True
    cell, now, prints = _of(run)
    path.parent.mkdir(exist_ok=True)
    with locks.locked_directory(path.parent):  # Workers of pytest-xdist share the file.
        old = baseline.load(path) if path.exists() else None
        cells: dict[Cell, Values] = {}
        scenarios, energy_models = dict(prints.scenarios), dict(prints.energy_models)
        if old is not None and old.fingerprint.programs.items() >= prints.programs.items():
            prints = Fingerprint({**old.fingerprint.programs, **prints.programs}, {}, {})
            same = _only(old.fingerprint, cell.scenario).scenarios in ({}, scenarios)
            cells = {
                one: values
                for one, values in old.cells.items()
                if same or one.scenario != cell.scenario
            }
            scenarios = {**old.fingerprint.scenarios, **scenarios}
            energy_models = {**old.fingerprint.energy_models, **energy_models}
        made = Baseline(
            reason=_REASON,
            made_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
            fingerprint=Fingerprint(prints.programs, scenarios, energy_models),
            cells={**cells, cell: now},
        )
        whole_file.write(path, baseline.write(made, _HEADING))


def _of(run: Run) -> tuple[Cell, Values, Fingerprint]:
    """Returns the run's cell, its figures and their fingerprint."""
    __tracebackhide__ = True
    if run.job is None or run.scenario is None or run.job.clock != "virtual":
        raise UsageError(f"{run.path}: no run in virtual time, so its figures do not repeat")
    cell = Cell(run.job.scenario, run.contestant, run.job.seed)
    if run.figures is None:
        raise AssertionError(f"{cell}: the download fails: {run.error}")
    return cell, figures.values(run.figures), fingerprint.of_run(run.scenario, run.job.client)


def _only(whole: Fingerprint, scenario: str) -> Fingerprint:
    """Returns the part of a fingerprint that is about one scenario."""
    return Fingerprint(
        whole.programs,
        {name: one for name, one in whole.scenarios.items() if name == scenario},
        {name: one for name, one in whole.energy_models.items() if name == scenario},
    )


def _bounds(given: Mapping[str, str]) -> dict[str, Bound]:
    by_key = {one.bound: one for one in FIGURES}
    if unknown := sorted(given.keys() - by_key.keys()):
        raise UsageError(f"no bound is called {unknown[0]!r}; there are: {', '.join(by_key)}")
    try:
        own = {key: figures.parse_bound(by_key[key], text) for key, text in given.items()}
    except ValueError as error:
        raise UsageError(f"bounds: {error}") from error
    return {**DEFAULT_BOUNDS, **own}
