"""Defines what the fixture `linklab` can do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from linklab.analysis.run import Run
from linklab.api import functions
from linklab.api.compared_runs import ComparedRuns
from linklab.api.errors import FailedRunError, UsageError
from linklab.api.settings import CLIENT
from linklab.core.errors import LinklabError
from linklab.testing import baseline_file
from linklab.testing.case import PROPERTY, WRITTEN, Case


def scenario_of(request: pytest.FixtureRequest, name: str | None) -> str:
    """Returns a scenario's name, or its path: a file beside the test, or as it is given. Raises
    UsageError."""
    if name is None:
        raise UsageError(
            "which scenario? allowed: the argument scenario= or links=, or @pytest.mark.linklab(NAME)"
        )
    beside = _directory(request) / name
    return str(beside) if beside.is_file() else name


def _directory(request: pytest.FixtureRequest) -> Path:
    """Returns the directory of the test's file, for a session that of the project."""
    return request.config.rootpath if request.scope == "session" else request.path.parent


Made = TypeVar("Made")


def told(call: Callable[[], Made]) -> Made:
    """Calls a function of linklab. pytest shows its errors at the test's line, without linklab's own
    lines."""
    __tracebackhide__ = True
    try:
        return call()
    except LinklabError as error:
        raise error.with_traceback(None) from None


class LabFixture:
    """Runs downloads and programs over the links of the test's scenario.

    `scenario` and `seed` are the marker's. The methods take the keywords of `linklab.run`,
    `linklab.execute` and `linklab.compare`.
    """

    def __init__(self, request: pytest.FixtureRequest, case: Case, out: Path) -> None:
        self.scenario = case.scenario
        self.seed = case.seed
        self._timeout = case.timeout
        self._request = request
        self._out = out

    def __repr__(self) -> str:
        return f"LabFixture({self.scenario!r}, seed {self.seed})"

    def run(self, client: str = CLIENT, *, scenario: str | None = None, **options: Any) -> Run:
        """Runs one client. Raises LinklabError if the run cannot be made or fails."""
        __tracebackhide__ = True
        where = self._scenario(scenario, options)
        return self._timed(lambda: functions.run(where, client, **self._with_own(options)))

    def execute(
        self, command: Sequence[str], *, scenario: str | None = None, **options: Any
    ) -> Run:
        """Runs a program. Raises LinklabError if the run cannot be made or the lab fails."""
        __tracebackhide__ = True
        where = self._scenario(scenario, options)
        return self._timed(lambda: functions.execute(where, command, **self._with_own(options)))

    def compare(
        self, clients: str | Sequence[str], *, scenario: str | None = None, **options: Any
    ) -> ComparedRuns:
        """Runs several clients. Raises LinklabError if the runs cannot be made."""
        __tracebackhide__ = True
        begun = time.monotonic()
        own = {"parallel": 1, **self._with_own(options)}
        where = self._scenario(scenario, options)
        made = told(lambda: functions.compare(where, clients, **own))
        for run in made.runs:
            self._note(run, (time.monotonic() - begun) / len(made.runs))
        return made

    def check(self, run: Run, *, bounds: Mapping[str, str] | None = None) -> None:
        """Compares a run with the baseline beside the test. Raises AssertionError if it is worse
        than the bounds allow.

        `bounds` replaces bounds of a suite by key, such as `{"download": "3 %"}`. With
        `--linklab-update` the run becomes the baseline.
        """
        __tracebackhide__ = True
        path = baseline_file.place(self._request.path, self._request.node)
        if self._request.config.getoption("--linklab-update"):
            baseline_file.update(path, run)
            self._request.node.user_properties.append((WRITTEN, str(path)))
        else:
            baseline_file.check(path, run, bounds or {})

    def _scenario(self, given: str | None, options: Mapping[str, Any]) -> str | None:
        if "links" in options:
            return given
        return scenario_of(self._request, given or self.scenario)

    def _with_own(self, options: dict[str, Any]) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "place": "guest",
            "clock": "virtual",
            "out": self._out,
            "timeout": self._timeout,
            **options,
        }

    def _timed(self, made: Callable[[], Run]) -> Run:
        """Makes a run and notes it for the summary, also if it fails."""
        __tracebackhide__ = True
        begun = time.monotonic()
        try:
            run = told(made)
        except FailedRunError as error:
            self._note(error.run, time.monotonic() - begun)
            raise
        self._note(run, time.monotonic() - begun)
        return run

    def _note(self, run: Run, wall_s: float) -> None:
        job, figures = run.job, run.figures
        links = figures.links if figures else {}
        self._request.node.user_properties.append(
            (
                PROPERTY,
                {
                    "run": f"{job.scenario if job else ''} {run.contestant} seed {job.seed if job else ''}",
                    "run_dir": str(run.path),
                    "wall_s": wall_s,
                    "lab_s": figures.download_s if figures else None,
                    "goodput": f"{figures.goodput_text}{figures.efficiency_text}"
                    if figures
                    else "",
                    "links": {name: [one.bytes, one.share] for name, one in links.items()},
                    "error": run.error,
                },
            )
        )
