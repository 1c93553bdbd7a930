"""Makes run requests of what a caller asks for. Raises one error for what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import UNSET

from linklab.api import environment
from linklab.api.errors import UsageError
from linklab.api.settings import RunOptions, Settings, StrPath
from linklab.lab.network.services import HTTPS_PORT, OwnServer
from linklab.realtime import way_outside
from linklab.runs import clients, programs, run_energy, visible_paths
from linklab.runs.job import require_no_credentials, words
from linklab.runs.reach import Reach
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario, find, of_links

Plan = Sequence[tuple[Scenario, Sequence[str]]]
"""Scenarios, each with its clients."""


def scenario_of(
    given: StrPath | Scenario | None, links: Mapping[str, str] | None = None
) -> Scenario:
    """Returns a scenario by name or path, the given one, or one of these links. Raises UsageError,
    ScenarioError."""
    if (given is None) == (not links):
        raise UsageError(
            "which links? allowed: a scenario, or links such as wifi=20mbit,30ms, but not both"
        )
    if links:
        return of_links(links)
    return given if isinstance(given, Scenario) else find(str(given))


def clients_of(names: str | Sequence[str], scenario: Scenario) -> list[str]:
    """Returns the scenario's clients in a list, which may be comma-separated. Raises UsageError for
    unknown ones."""
    joined = names if isinstance(names, str) else ",".join(names)
    try:
        return clients.chosen(joined, scenario)
    except ValueError as error:
        raise UsageError(str(error)) from None


def for_client(scenario: Scenario, client: str, how: RunOptions, where: Settings) -> RunRequest:
    """Returns the request for a run of one client. Raises UsageError, RunError, ScenarioError."""
    chosen = clients_of(client, scenario)
    if len(chosen) != 1:
        raise UsageError(f"run takes one algorithm, not {', '.join(chosen)}: use compare")
    environment.require(chosen, where.place, where.clock, where.processor)
    return RunRequest(
        scenario,
        chosen[0],
        how.seed,
        shift_s=how.shift,
        energy=run_energy.model_for(scenario, how.energy_model),
        server=_server(how),
        share=_share(how, for_server=True),
        pcap=_recorded_links(how.pcap, scenario),
        tls_keys=how.tls_keys,
    )


def for_clients(plan: Plan, runs: int, how: RunOptions, where: Settings) -> list[RunRequest]:
    """Returns a request for every scenario and client of the plan, with `runs` seeds each. Raises
    UsageError, RunError, ScenarioError."""
    names = [name for _, names in plan for name in names]
    unique = list(dict.fromkeys(names))
    environment.require(unique, where.place, where.clock, where.processor)
    server, share = _server(how), _share(how, for_server=True)
    return [
        RunRequest(
            scenario,
            name,
            how.seed + n,
            shift_s=how.shift,
            energy=energy,
            server=server,
            share=share,
        )
        for scenario, names in plan
        for energy in [run_energy.model_for(scenario, how.energy_model)]
        for name in names
        for n in range(runs)
    ]


def for_command(
    scenario: Scenario, command: Sequence[str], how: RunOptions, reach: Reach | None = None
) -> RunRequest:
    """Returns the request for a run of the user's program. Raises UsageError, ProgramError."""
    try:
        require_no_credentials(command)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return RunRequest(
        scenario,
        None,
        how.seed,
        command=programs.located(command),
        shift_s=how.shift,
        server=_server(how),
        share=_share(how),
        reach=reach,
        pcap=_recorded_links(how.pcap, scenario),
        tls_keys=how.tls_keys,
    )


def clock_with_outside(clock: str) -> str:
    """Returns the clock of a run that reaches what is outside. Raises UsageError."""
    if clock == "virtual":
        raise UsageError("what is outside goes by the real clock: leave out --clock virtual")
    return "real"


def require_no_nul(names: Iterable[str]) -> None:
    """Raises UsageError if one has the character NUL, which no program can be given."""
    if any("\0" in one for one in names):
        raise UsageError("a name with the character NUL; allowed: names and URLs without it")


def outside_of(
    origins: Sequence[str],
    everything: bool,
    proxy: tuple[str, int] | None,
    scenario: Scenario,
    place: str,
    go_on: Callable[[], None] = lambda: None,
) -> Reach | None:
    """Returns the connections to the outside that are asked for. Calls `go_on` before each wait.
    Raises UsageError."""
    if not (origins or everything or proxy):
        return None
    try:
        return way_outside.wanted(origins, everything, proxy, scenario, place, go_on)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _server(how: RunOptions) -> OwnServer | None:
    if how.server is None:
        if how.port is not None:
            raise UsageError("--port goes with --server: H2O listens on 443")
        if how.server_restarts is not None:
            raise UsageError("--server-restarts goes with --server: H2O does not end")
        return None
    try:
        command = words(how.server) if isinstance(how.server, str) else tuple(how.server)
        require_no_credentials(command)
    except ValueError as error:
        raise UsageError(f"--server: {error}") from error
    if not command:
        raise UsageError("--server: an empty command; allowed: a program and its arguments")
    after_s = UNSET if how.server_restarts is None else how.server_restarts
    return OwnServer(programs.located(command), how.port or HTTPS_PORT, after_s)


def _share(how: RunOptions, *, for_server: bool = False) -> tuple[str, ...]:
    """Returns the shared paths, which only the user's programs use. With `for_server`, the server
    is the only such program. Raises UsageError, ShareError."""
    if for_server and how.share and how.server is None:
        raise UsageError("--share goes with --server: nothing else here reads files of a home")
    paths = tuple(str(Path(one).absolute()) for one in how.share)
    for path in paths:
        visible_paths.require(path)
    return paths


def _recorded_links(pcap: str | None, scenario: Scenario) -> tuple[str, ...]:
    if pcap is None or pcap == "all":
        return () if pcap is None else tuple(scenario.links)
    if pcap not in scenario.links:
        raise UsageError(
            f"--pcap {pcap}: {scenario.name} has no such link; "
            f"allowed: {', '.join(scenario.links)}, all"
        )
    return (pcap,)
