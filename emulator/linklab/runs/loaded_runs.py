"""Loads finished runs from their directories, wherever they were made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from linklab.core import plain_file
from linklab.core.errors import LinklabError
from linklab.core.records import QueueRecord, Tail
from linklab.energy.model import EnergyModel
from linklab.runs import job, link_rates, run_energy, summary
from linklab.runs.job import Job
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.scenario import Scenario, ScenarioError


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """Holds one run. If the run failed, `figures` is None and `failure` says why. `rates_bps` has
    the links' typical rates on the wire (`link_rates.py`). If `first_s` is not 0, the figures cover
    only the first `first_s` seconds (`first_seconds.py`)."""

    run_dir: Path
    job: Job
    scenario: Scenario
    figures: RunFigures | None
    failure: str = ""
    rates_bps: dict[str, float] | None = None
    first_s: float = 0.0

    @property
    def client_name(self) -> str:
        """The name of the run's client."""
        return self.job.title


class RunDirectoryError(LinklabError, RuntimeError):
    """A directory is no run directory, or one of another format. The message says which."""


def found_in(paths: Iterable[Path]) -> list[Path]:
    """Returns the run directories among the paths and directly in them, sorted, each once. Raises
    RunDirectoryError if a path has none, or an incomplete one."""
    found: dict[Path, None] = {}
    for path in paths:
        entries = [] if _is_run(path) else sorted(_entries(path))
        halves = (
            one for one in entries if not _is_run(one) and (one / job.SCENARIO_FILE).is_file()
        )
        for half in halves:
            raise RunDirectoryError(f"{half}: is half a run directory: {job.FILE} is missing")
        inside = [path] if _is_run(path) else [one for one in entries if _is_run(one)]
        if not inside:
            raise RunDirectoryError(
                f"{path}: no run directory, and none in it; needed: directories with {job.FILE}"
            )
        found.update(dict.fromkeys(inside))
    return list(found)


def _entries(path: Path) -> list[Path]:
    try:
        return [one for one in path.iterdir() if one.is_dir() and not one.is_symlink()]
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from error


def _is_run(path: Path) -> bool:
    return (path / job.FILE).is_file()


class Reader:
    """Reads run directories. Parses a scenario that many runs share only once. `model_of` gives an
    energy model for the scenario of a run that has none, with `instead` for every run."""

    def __init__(
        self,
        model_of: Callable[[Scenario], EnergyModel | None] = lambda _: None,
        *,
        instead: bool = False,
    ) -> None:
        self._model_of = model_of
        self._instead = instead
        self._scenarios: dict[tuple[tuple[str, bytes], ...], Scenario] = {}

    def read(self, run_dir: Path) -> LoadedRun:
        """Reads a run, also a failed one. Raises RunDirectoryError for an incomplete directory or
        another format."""
        try:
            manifest = job.read(run_dir)
        except OSError as error:
            raise RunDirectoryError(f"{error}; this linklab reads format {job.FORMAT}") from error
        try:
            scenario = self._scenario(run_dir)
        except FileNotFoundError as error:
            missing = Path(error.filename).name
            raise RunDirectoryError(
                f"{run_dir}: is half a run directory: {missing} is missing"
            ) from error
        except (OSError, ScenarioError) as error:
            raise RunDirectoryError(f"{run_dir}: cannot be read: {error}") from error
        run = LoadedRun(run_dir, manifest, scenario, None)
        try:
            figures = self._with_energy(
                run_dir, summary.read_or_compute(run_dir), scenario, manifest.shift_s
            )
            rates = _rates_bps(run, figures)
        except (FigureError, OSError) as error:
            return replace(run, failure=str(error))
        return replace(run, figures=figures, rates_bps=rates)

    def _with_energy(
        self, run_dir: Path, figures: RunFigures, scenario: Scenario, shift_s: float
    ) -> RunFigures:
        is_asked = self._instead or figures.energy is None
        model = self._model_of(scenario) if is_asked else None
        queues = [] if model is None else Tail(run_dir, QueueRecord).read()
        if model is None or not queues:
            return figures
        cost = run_energy.of_download(model, scenario, run_dir, queues, shift_s, figures)
        return replace(figures, energy=cost.figures)

    def _scenario(self, run_dir: Path) -> Scenario:
        """Returns the run's scenario. The key includes the traces' contents, because each run has
        its own copies under common names."""
        traces = (one for one in run_dir.glob(f"{job.TRACES}/*") if one.is_file())
        files = [run_dir / job.SCENARIO_FILE, *sorted(traces)]
        key = tuple((one.name, hashlib.sha256(plain_file.read(one)).digest()) for one in files)
        if key not in self._scenarios:
            self._scenarios[key] = job.scenario_of(run_dir)
        return self._scenarios[key]


def different_builds(runs: Iterable[LoadedRun]) -> str | None:
    """Returns a warning if runs were made with different builds of multilink, else None."""
    builds = {one.job.versions.get("multilink_sha256") for one in runs}
    if len(builds) > 1:
        return f"the runs were made with {len(builds)} different builds of multilink"
    return None


def _rates_bps(run: LoadedRun, figures: RunFigures) -> dict[str, float]:
    start_s = run.job.shift_s
    ends_s = {
        name: start_s + (figures.download_s if link.finish_s is None else link.finish_s)
        for name, link in figures.links.items()
        if link.bytes
    }
    queues = Tail(run.run_dir, QueueRecord).read()
    return link_rates.median_rates_bps(queues, start_s, ends_s, run.scenario.workload.direction)
