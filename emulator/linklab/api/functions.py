"""Runs clients and programs in the lab for Python programs: `linklab.run`, `compare`, `execute`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from linklab.analysis.run import Run, read_run
from linklab.analysis.tables import Runs
from linklab.api import requests, series
from linklab.api.compared_runs import ComparedRuns
from linklab.api.errors import FailedRunError, UsageError
from linklab.api.progress import Tell, silent
from linklab.api.settings import CLIENT, RUNS, RunOptions, Settings, StrPath, require_runs
from linklab.places import choice
from linklab.runs.runner import Finished, RunRequest
from linklab.scenario import Scenario

USUAL = "published,adaptive"
"""The default selection of `compare`: the thesis' algorithms and our own."""


def run(
    scenario: StrPath | Scenario | None = None,
    client: str = CLIENT,
    *,
    links: Mapping[str, str] | None = None,
    seed: int = 1,
    place: str = "auto",
    clock: str = "auto",
    processor: str | None = None,
    out: StrPath = RUNS,
    timeout: float | None = None,
    shift: float = 0.0,
    energy_model: str | None = None,
    server: str | Sequence[str] | None = None,
    server_restarts: float | None = None,
    port: int | None = None,
    share: Sequence[StrPath] = (),
    pcap: str | None = None,
    tls_keys: bool = False,
    progress: Tell = silent,
) -> Run:
    """Runs one client in a scenario, as `linklab run` does. Returns the finished run.

    Args:
        scenario: a name of `linklab scenarios`, or a YAML file.
        client: an algorithm or peer, as for `linklab run -a`.
        links: links in place of a scenario, as for `linklab run --link`:
            `{"wifi": "20 Mbit/s 30 ms", "lte": "fast-4g"}`.
        seed: the seed of everything random.
        place: `auto`, `guest` or `host`.
        clock: `auto`, `virtual` or `real`.
        processor: `auto`, `native` or `emulated`. None: as LINKLAB_PROCESSOR says.
        out: the parent of run directories.
        timeout: seconds of the lab's time after which the run counts as hung.
        shift: seconds by which the client starts later.
        energy_model: a model of `linklab energy` or a file, in place of the scenario's.
        server: a server program in place of H2O, as words or as for `linklab exec --server`.
        server_restarts: seconds after which that server is started again when it has ended.
        port: the port of that server. None: 443.
        share: directories of a home that the guest shows to that server.
        pcap: a link whose packets are recorded, or `all`.
        tls_keys: whether the client's TLS keys are written.
        progress: a function that is called with every `Progress`.

    Raises LinklabError if the run cannot be made, FailedRunError if it fails.
    """
    how = RunOptions(
        seed=seed,
        shift=shift,
        energy_model=energy_model,
        server=server,
        server_restarts=server_restarts,
        port=port,
        share=share,
        pcap=pcap,
        tls_keys=tls_keys,
    )
    where = Settings(place=place, clock=clock, processor=processor, out=out, timeout=timeout)
    request = requests.for_client(requests.scenario_of(scenario, links), client, how, where)
    finished = series.run_one(request, where, progress)
    return _whole(request, finished, series.figures_of(finished))


def compare(
    scenario: StrPath | Scenario | None = None,
    clients: str | Sequence[str] = USUAL,
    *,
    links: Mapping[str, str] | None = None,
    runs: int = 1,
    seed: int = 1,
    place: str = "auto",
    clock: str = "auto",
    processor: str | None = None,
    out: StrPath = RUNS,
    timeout: float | None = None,
    shift: float = 0.0,
    energy_model: str | None = None,
    server: str | Sequence[str] | None = None,
    server_restarts: float | None = None,
    port: int | None = None,
    share: Sequence[StrPath] = (),
    parallel: int | None = None,
    progress: Tell = silent,
) -> ComparedRuns:
    """Runs several clients in a scenario, as `linklab compare` does. Returns their comparison.

    Args:
        scenario: a name of `linklab scenarios`, or a YAML file.
        clients: names as for `linklab compare -a`.
        runs: runs of each client, with seeds from `seed` on.
        parallel: guests at a time, each on a core of its own. None: all cores in virtual time.

    The others are those of `run`. Raises LinklabError if the runs cannot be made. A run that fails
    has an `error` in the result.
    """
    require_runs(runs)
    how = RunOptions(
        seed=seed,
        shift=shift,
        energy_model=energy_model,
        server=server,
        server_restarts=server_restarts,
        port=port,
        share=share,
    )
    where = Settings(
        place=place, clock=clock, processor=processor, out=out, timeout=timeout, parallel=parallel
    )
    found = requests.scenario_of(scenario, links)
    names = requests.clients_of(clients, found)
    asked = requests.for_clients([(found, names)], runs, how, where)
    made = series.run_series(asked, where, "compare", progress)
    all_runs = Runs(tuple(read_run(one.run_dir) for one in made.finished))
    return ComparedRuns(made.comparison(found, names), all_runs)


def execute(
    scenario: StrPath | Scenario | None = None,
    command: Sequence[str] = (),
    *,
    links: Mapping[str, str] | None = None,
    server: str | Sequence[str] | None = None,
    server_restarts: float | None = None,
    port: int | None = None,
    seed: int = 1,
    place: str = "auto",
    clock: str = "auto",
    processor: str | None = None,
    out: StrPath = RUNS,
    timeout: float | None = None,
    shift: float = 0.0,
    share: Sequence[StrPath] = (),
    origin: Sequence[str] = (),
    outside: bool = False,
    pcap: str | None = None,
    tls_keys: bool = False,
    progress: Tell = silent,
) -> Run:
    """Runs any program as the lab's client, as `linklab exec` does. Returns the finished run.

    Its `exit_code`, `stdout` and `stderr` are the program's.

    Args:
        scenario: a name of `linklab scenarios`, or a YAML file.
        command: the program and its arguments, in which `{url}`, `{output}` and the other
            placeholders of `linklab exec` are filled in.
        origin: URLs of servers outside that are put behind the links (real clock).
        outside: whether the lab reaches everything that this machine reaches (real clock).

    The others are those of `run`. Raises LinklabError if the run cannot be made, FailedRunError if
    the lab fails.
    """
    if isinstance(command, str) or not command:
        raise UsageError(f"command cannot be {command!r}; allowed: a list, a program and its words")
    how = RunOptions(
        seed=seed,
        shift=shift,
        server=server,
        server_restarts=server_restarts,
        port=port,
        share=share,
        pcap=pcap,
        tls_keys=tls_keys,
    )
    where = Settings(place=place, clock=clock, processor=processor, out=out, timeout=timeout)
    if origin or outside:
        where = replace(where, clock=requests.clock_with_outside(where.clock))
    found = requests.scenario_of(scenario, links)
    name = choice.choose(where.place, where.clock, where.processor).name
    reaches = requests.outside_of(origin, outside, None, found, name)
    request = requests.for_command(found, command, how, reaches)
    finished = series.run_one(request, where, progress)
    return _whole(request, finished, finished.error)


def _whole(request: RunRequest, finished: Finished, error: object) -> Run:
    """Returns a finished run. Raises FailedRunError if there is an error in words."""
    made = read_run(Path(finished.run_dir))
    if isinstance(error, str):
        raise FailedRunError(f"{request.label}: {error}\nrun directory: {finished.run_dir}", made)
    return made
