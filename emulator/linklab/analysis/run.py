"""Reads a run directory as an object: its job, figures and time series.

    runs = linklab.load("runs/20260101-120000-compare")
    runs[0].figures.download_s

Files are read on first access. Units are those of the files: seconds, bytes, bit/s, ratios.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from linklab.core import plain_file, records
from linklab.core.errors import LinklabError
from linklab.core.printable import as_utf8
from linklab.core.records import (
    ClientRecord,
    EventRecord,
    LinkRecord,
    ProcessRecord,
    QueueRecord,
    R,
    Tail,
)
from linklab.energy.account import Power
from linklab.runs import job, outcome, run_energy, summary, time_series
from linklab.runs.job import Job
from linklab.runs.outcome import Outcome
from linklab.runs.requests import RangeRequest
from linklab.runs.run_figures import ClientSummary, FigureError, RunFigures
from linklab.scenario import Scenario, ScenarioError

_CLIENT_FILE = "client.json"


class LoadError(LinklabError, ValueError):
    """The path is no run, or a run of another format. The message says which and why."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """multilink's state of a link at a time, every 100 ms."""

    t_s: float
    link: str
    received_bytes: int
    throughput_bps: float
    rtt_s: float
    min_rtt_s: float
    in_flight: int


@dataclass(frozen=True, repr=False)
class Run:
    """A run directory.

    `job` is None for a run outside the lab (`multilink get --run-dir`), which has no scenario.
    """

    path: Path
    job: Job | None

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The directory's name."""
        return as_utf8(self.path.name)

    @functools.cached_property
    def scenario(self) -> Scenario | None:
        """The scenario of the run. Raises LoadError if it cannot be read."""
        if self.job is None:
            return None
        try:
            return job.scenario_of(self.path)
        except (OSError, ScenarioError) as error:
            raise LoadError(f"{self.path}: {error}") from error

    @functools.cached_property
    def contestant(self) -> str:
        """The client that ran: an algorithm, a peer or a program."""
        if self.job is not None:
            return self.job.title
        client = self.client
        return client.algorithm if client else "unknown"

    @functools.cached_property
    def client(self) -> ClientSummary | None:
        """multilink's own summary; None if it did not run or end. Raises LoadError."""
        try:
            return records.document(self.path / _CLIENT_FILE, ClientSummary)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LoadError(str(error)) from error

    @functools.cached_property
    def _figures(self) -> RunFigures | str:
        if self.job is None:
            return "a run outside the lab has no scenario, so no oracle"
        try:
            return summary.read_or_compute(self.path)
        except (FigureError, OSError) as error:
            return str(error)

    @property
    def figures(self) -> RunFigures | None:
        """The run's figures; None if it failed, and `error` says why."""
        return None if isinstance(self._figures, str) else self._figures

    @property
    def error(self) -> str | None:
        """Why there are no figures, or None."""
        return as_utf8(self._figures) if isinstance(self._figures, str) else None

    @property
    def download_s(self) -> float:
        """Seconds from the client's start until it had everything, in the lab's time. Raises
        LoadError if the run failed."""
        if self.figures is None:
            raise LoadError(f"{self.path}: {self.error}")
        return self.figures.download_s

    @functools.cached_property
    def outcome(self) -> Outcome:
        """How the client's process ended. Raises LoadError if the lab failed."""
        try:
            return outcome.read(self.path)
        except OSError as error:
            raise LoadError(str(error)) from error

    @property
    def exit_code(self) -> int:
        """The exit code of the client's process. Raises LoadError if the lab failed."""
        return self.outcome.exit_code

    @property
    def stdout(self) -> str:
        """What the client wrote to its standard output."""
        return self._text("client.out")

    @property
    def stderr(self) -> str:
        """What the client wrote to its standard error."""
        return self._text("client.err")

    def _text(self, name: str) -> str:
        try:
            return plain_file.read(self.path / name).decode(errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise LoadError(str(error)) from error

    @property
    def states(self) -> list[LinkRecord]:
        """All states of all links. Raises LoadError, like the other series."""
        return self._series(LinkRecord)

    @property
    def queues(self) -> list[QueueRecord]:
        """The counters of the links' queues, per direction."""
        return self._series(QueueRecord)

    @property
    def events(self) -> list[EventRecord]:
        """The events of links and lab."""
        return self._series(EventRecord)

    @property
    def requests(self) -> list[RangeRequest]:
        """The HTTP requests in the order of their ids: multilink's, or those of another program to the
        lab's own server."""
        size_bytes = 0 if self.scenario is None else self.scenario.payload.size_bytes
        try:
            return time_series.all_requests(self.path, self._shift_s, size_bytes)
        except OSError as error:
            raise LoadError(str(error)) from error

    @property
    def samples(self) -> list[Sample]:
        """multilink's states of its links over time."""
        return [
            Sample(
                t_s=self._shift_s + line.t_s,
                link=line.link,
                received_bytes=line.received_bytes,
                throughput_bps=line.throughput_bps,
                rtt_s=line.rtt_ns / 1e9,
                min_rtt_s=line.min_rtt_ns / 1e9,
                in_flight=line.in_flight,
            )
            for line in self._client_records
            if line.event == "sample"
        ]

    @property
    def process_samples(self) -> list[ProcessRecord]:
        """Processor time and memory of client and server, ten times a second; empty in virtual time."""
        return self._series(ProcessRecord)

    @property
    def power(self) -> list[Power]:
        """The device's power over time by the run's energy model, until its radios are idle.

        It is empty if the run has no energy model or failed. Raises LoadError.
        """
        if self.figures is None or self.scenario is None:
            return []
        try:
            model = run_energy.model_of(self.path)
            if model is None:
                return []
            cost = run_energy.of_download(
                model, self.scenario, self.path, self.queues, self._shift_s, self.figures
            )
        except (FigureError, OSError, ScenarioError) as error:
            raise LoadError(f"{self.path}: {error}") from error
        return list(cost.power)

    @property
    def _shift_s(self) -> float:
        return self.job.shift_s if self.job else 0.0

    @functools.cached_property
    def _client_records(self) -> list[ClientRecord]:
        return self._series(ClientRecord)

    def _series(self, kind: type[R]) -> list[R]:
        try:
            return Tail(self.path, kind).read()
        except OSError as error:
            raise LoadError(str(error)) from error


def find_runs(path: Path) -> list[Run]:
    """Finds the runs at and below a directory, ordered by path. Raises LoadError if there is none."""
    if not path.is_dir():
        raise LoadError(f"{path} is no directory; allowed: a run directory, or one that holds some")
    runs = []
    for directory, folders, files in os.walk(path):
        folders.sort()
        if job.FILE in files:
            runs.append(read_run(Path(directory)))
            folders.clear()
        elif _CLIENT_FILE in files:
            runs.append(Run(Path(directory), None))
            folders.clear()
    if not runs:
        raise LoadError(f"{path} is no run directory and holds none ({job.FILE} is missing)")
    return runs


def read_run(directory: Path) -> Run:
    """Reads the run of a directory with a manifest. Raises LoadError."""
    return Run(directory, _job(directory))


def _job(directory: Path) -> Job:
    try:
        return job.read(directory)
    except OSError as error:
        raise LoadError(f"{error}; this linklab reads format {job.FORMAT}") from error
