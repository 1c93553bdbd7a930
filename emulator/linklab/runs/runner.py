"""Prepares run directories, executes them in parallel, and collects their outcomes."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from linklab.core import plain_file
from linklab.core.error_report import report_error
from linklab.core.errors import LinklabError
from linklab.core.limits import MAX_SEED
from linklab.core.paths import GUEST_MULTILINK, MULTILINK, PEERS, PYTHON_PATH, in_cache
from linklab.core.scratch import scratch_prefix
from linklab.lab.network.services import LISTENERS, OwnServer
from linklab.lab.programs import authority, payload
from linklab.lab.programs import terminal as terminals
from linklab.lab.programs.terminal import Terminal
from linklab.links import held, oracle
from linklab.places.choice import SLOWER, Environment
from linklab.places.emulated import machine
from linklab.places.emulated.guest import EmulatedGuest
from linklab.places.guest import confinement, gateway, homes, image, kernel
from linklab.places.guest.boot import Guest, memory_bytes, side_by_side
from linklab.places.versions import versions
from linklab.runs import clients, job, outcome, programs, run_energy, visible_paths
from linklab.runs.job import Job
from linklab.runs.payload_share import PayloadShare
from linklab.runs.reach import Reach
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.named_files import with_files
from linklab.schema.document import ScenarioError

MIN_WATCHDOG_S = 120.0
"""Wall-clock time that every run may take, however short its download."""

MIN_LIMIT_S = 60.0
"""Time of the lab that a user's program may take, however short the download."""

LIMIT_FACTOR = 10.0
"""Further seconds of both per second of the slowest link's download. Even on a busy core a guest
runs faster than real time."""


_TOLD_S = 1.0
"""The interval at which callers are told how far runs are."""

_SESSION = "linklab.runs.guest_session"
"""The guest calls this module's `main`."""

_LAST_WORDS_BYTES = 16_384
"""The most bytes that are read of the error output of the user's programs."""

_LAST_LINES = 5
_MOST_CHARACTERS = 200
"""The most lines, and characters of a line, that an error quotes of it."""


class RunError(LinklabError, RuntimeError):
    """A run yielded no figures. The message says why and names its directory."""


@dataclass(frozen=True)
class RunRequest:
    """Describes a run to be made: a client by name, or a user's command. The command is called
    `name`, or like its program.

    `server` is a user's program that serves instead of H2O. Packets of the links in `pcap` are
    recorded, with `tls_keys` also the keys to decrypt them. The guest sees what is in `share` of
    users' homes, and what the programs need (`visible_paths.py`). A command in a suite's or campaign's file
    may come from a stranger. It sees only what lies `beside` that file. `energy` is the text of an
    energy model that replaces the scenario's (`run_energy.model_for`). Raises RunError if client or
    seed does not fit.
    """

    scenario: Scenario
    client: str | None
    seed: int
    command: tuple[str, ...] | None = None
    shift_s: float = 0.0
    name: str | None = None
    energy: str | None = None
    server: OwnServer | None = None
    terminal: Terminal | None = None
    reach: Reach | None = None
    pcap: tuple[str, ...] = ()
    tls_keys: bool = False
    share: tuple[str, ...] = ()
    beside: str | None = None

    def __post_init__(self) -> None:
        if self.seed > MAX_SEED:
            raise RunError(f"no run has the seed {self.seed}; allowed: 0 to 2^63-1")
        has_energy = self.energy is not None or self.scenario.energy is not None
        try:
            others = clients.further(self.scenario, self.client)
        except ScenarioError as error:
            raise RunError(str(error)) from error
        for name in (self.client, *others):
            unfit = name and clients.misfit(name, self.scenario, has_energy=has_energy)
            if unfit:
                raise RunError(unfit)
        if self.server is not None and self.client and clients.client_of(self.client).server:
            raise RunError(f"{self.client} has a server of its own; allowed: without --server")

    @property
    def peers(self) -> Path | None:
        """The directory of the compiled peers' programs, None if the client is none of them."""
        is_one = self.client is not None and clients.client_of(self.client).is_compiled
        return PEERS if is_one else None

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """The user's programs in this run."""
        return [one for one in (self.command, self.server and self.server.command) if one]

    @property
    def client_name(self) -> str:
        """The client's name, or the command's."""
        return job.title(self.client, self.name, self.command)

    @property
    def label(self) -> str:
        """The run's name on screen and on disk."""
        return f"{self.scenario.name}-{self.client_name}-seed{self.seed}"


@dataclass(frozen=True)
class Finished:
    """Holds a finished request: its directory, and its error if it failed."""

    request: RunRequest
    run_dir: Path
    error: str | None
    wall_s: float


def new_directory(parent: Path, name: str) -> Path:
    """Makes a new run directory, with a number appended if the name exists."""
    parent.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"-{n}" for n in range(2, 10_000))):
        with contextlib.suppress(FileExistsError):
            path = parent / f"{name}{suffix}"
            path.mkdir()
            return path.resolve()
    raise RunError(f"{parent} holds ten thousand runs called {name}: clear it out")


_authority = functools.cache(authority.ensure)
"""Checking the certificates takes longer than writing a manifest, so it is done once per process.
"""


def _with_files(scenario: Scenario, run_dir: Path) -> Scenario:
    """Returns the scenario with its traces and delay distributions copied into the run directory."""

    def copied(owner: str, file: Path) -> Path:
        copy = Path(job.TRACES, f"{owner}-{file.name}")
        (run_dir / copy.parent).mkdir(exist_ok=True)
        shutil.copyfile(file, run_dir / copy)
        return copy

    return with_files(scenario, copied)


def prepare(
    request: RunRequest,
    run_dir: Path,
    place: Environment,
    *,
    live: bool = False,
    limit_s: float | None = None,
) -> None:
    """Fills a new run directory with the scenario as run and the manifest. The run counts as hung
    after `limit_s` of the lab's time, unless that is None. Raises ProgramError."""
    certificates = _authority(in_cache("authority"))
    served = payload.ensure(request.scenario.payload, in_cache("payloads"))
    named = tuple(
        dataclasses.replace(one, algorithm=clients.ALIASES.get(one.algorithm, one.algorithm))
        for one in request.scenario.clients
    )
    scenario = dataclasses.replace(request.scenario, clients=named)
    text = to_yaml(_with_files(scenario, run_dir))
    plain_file.write(run_dir / job.SCENARIO_FILE, text.encode())
    energy = request.energy or run_energy.model_for(request.scenario)
    if energy is not None:
        plain_file.write(run_dir / job.ENERGY_FILE, energy.encode())
    job.write(
        Job(
            scenario=request.scenario.name,
            client=request.client,
            name=request.name,
            command=list(programs.located(request.command)) if request.command else None,
            server=programs.server_located(request.server),
            environment=programs.environment() if request.command or request.server else {},
            directory=(request.beside or str(Path.cwd())) if request.commands else UNSET,
            terminal=request.terminal,
            outside=None if request.reach is None else request.reach.outside,
            seed=request.seed,
            place=place.name,
            clock=place.clock,
            reason=place.reason,
            shift_s=request.shift_s,
            pcap=list(request.pcap),
            tls_keys=request.tls_keys,
            live=live,
            limit_s=UNSET if limit_s is None else limit_s,
            started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            payload=str(served),
            payload_sha256=payload.sha256_of(served),
            multilink=str(GUEST_MULTILINK if place.name == "guest" else MULTILINK),
            peers=UNSET if request.peers is None else str(request.peers),
            certificate_authority=str(certificates.ca_cert),
            certificate=str(certificates.cert),
            key=str(certificates.key),
            versions=versions(place.name),
        ),
        run_dir,
    )


def memory_of(scenario: Scenario) -> int:
    """Returns the memory in bytes of a guest that runs the scenario."""
    uploaded = scenario.workload.upload is not None
    size_bytes = scenario.payload.size_bytes * len(scenario.clients)
    return memory_bytes(size_bytes, uploaded=uploaded, held_bytes=held.held_bytes(scenario))


def fitting(scenarios: Sequence[Scenario], *, is_emulated: bool) -> int:
    """Returns how many guests fit into the memory at the same time, whichever scenario each runs; at
    least one."""
    most = max(map(memory_of, scenarios), default=memory_bytes(0))
    return side_by_side(machine.memory_bytes(most) if is_emulated else most)


def _slowest_s(scenario: Scenario) -> float:
    """Returns how long the slowest link takes for the payload of all clients, beside other senders."""
    slowest_s = max(oracle.single_link_s(scenario, link) for link in scenario.links)
    return min(slowest_s * len(scenario.clients), oracle.HORIZON_S)


def limit_s(request: RunRequest, timeout_s: float | None) -> float | None:
    """Returns the seconds of the lab's time, from the client's start, after which a run counts as
    hung. None: the player ends a client of ours after a time without packets."""
    if timeout_s is not None or request.command is None:
        return timeout_s
    scenario = request.scenario
    own_s = scenario.workload.own_s(scenario.payload.size_bytes)
    last_s = max((one.at_s or 0.0 for one in scenario.events), default=0.0)
    return max(MIN_LIMIT_S, last_s, own_s) + LIMIT_FACTOR * _slowest_s(scenario)


def watchdog_s(request: RunRequest, place: Environment, timeout_s: float | None = None) -> float:
    """Returns the wall-clock seconds after which a run counts as hung, as a last resort: the lab's
    own limit ends a run earlier, unless virtual time stands."""
    scenario = request.scenario
    usual_s = MIN_WATCHDOG_S
    if timeout_s is None:
        own_s = scenario.workload.own_s(scenario.payload.size_bytes)
        usual_s += own_s + LIMIT_FACTOR * _slowest_s(scenario)
    least_s = MIN_LIMIT_S + (limit_s(request, timeout_s) or 0.0)
    wall_s = request.shift_s + max(usual_s, least_s)
    return wall_s * (SLOWER if place.is_emulated else 1)


class _HostRun:
    """Runs an execution on the host, as a child process with the interface of a Guest.

    The child is the first process of a PID namespace. When it dies, the kernel ends every process
    of its lab, and the network namespaces disappear.
    """

    core = None
    """Its processes are not bound to a core."""

    def __init__(
        self,
        run_dir: Path,
        timeout_s: float,
        channel: int | None = None,
        listeners: Sequence[socket.socket] = (),
    ) -> None:
        descriptors = [one.fileno() for one in listeners]
        own = {LISTENERS: " ".join(map(str, descriptors))}
        if channel is not None:
            own[terminals.ENVIRONMENT] = str(channel)
        self.run_dir = self.growing_dir = run_dir
        self.deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        with contextlib.ExitStack() as stack:
            # Made here, because the execution has process number 1 in its own namespace. By that
            # number `linklab clean` could not tell that it has ended.
            scratch = tempfile.mkdtemp(prefix=scratch_prefix("run"))
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            Path(scratch).chmod(0o711)  # H2O may become the user nobody, and keeps uploads below.
            with (run_dir / "console.log").open("wb") as log:
                self._process = subprocess.Popen(
                    [
                        *("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork"),
                        *("--kill-child=KILL", "--mount-proc"),
                        sys.executable,
                        "-m",
                        "linklab.runs.execution",
                        str(run_dir),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={
                        **os.environ,
                        "PYTHONPATH": str(PYTHON_PATH),
                        "TMPDIR": scratch,
                        **own,
                    },
                    pass_fds=[*descriptors, *([] if channel is None else [channel])],
                    start_new_session=True,
                )
            stack.callback(self._end)
            self._descriptor = os.pidfd_open(self._process.pid)
            stack.callback(os.close, self._descriptor)
            self._resources = stack.pop_all()

    def fileno(self) -> int:
        """Returns a descriptor that is readable once the execution has ended."""
        return self._descriptor

    def close(self) -> None:
        """Ends the execution if it still runs, by SIGTERM first."""
        self._resources.close()

    def _end(self) -> None:
        patience = time.monotonic() + 10
        while self._process.poll() is None and time.monotonic() < patience:
            # Repeated, because process 1 of a namespace ignores the signal until it has a handler.
            os.killpg(self._process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=0.2)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def exit_code(self) -> int:
        """Returns the execution's exit code. Raises RunError if it hangs."""
        code = self._process.poll()
        if code is None:
            raise RunError(
                f"the lab was {outcome.HUNG} {self._timeout_s:.0f} s and was ended "
                f"(--timeout allows more); its console: {self.run_dir / 'console.log'}"
            )
        return code


Running = Guest | EmulatedGuest | _HostRun
"""A started execution. `fileno` is readable once it has ended. Until then its files grow in
`growing_dir`."""


def begin(
    request: RunRequest,
    run_dir: Path,
    place: Environment,
    timeout_s: float,
    channel: int | None = None,
) -> Running:
    """Starts a prepared run, which counts as hung after `timeout_s`. The caller closes the result.

    `channel` is the descriptor of the far end of its terminal's channel (lab/programs/terminal.py).
    """
    if place.name == "host":
        listeners = () if request.reach is None else request.reach.listeners
        return _HostRun(run_dir, timeout_s, channel, listeners)
    certificates = _authority(in_cache("authority"))
    seen = visible_paths.select(request.commands, request.share, request.beside)
    if confinement.fence().name != "none" and request.name != job.NOBODY:
        for note in seen.notes:
            _say_once(note)
    needed = (certificates.ca_cert, certificates.cert, certificates.key, *seen.paths)
    needed += () if request.peers is None else (request.peers,)
    if place.is_emulated:
        return EmulatedGuest(
            kernel.ensure(recipe=kernel.MACHINE),
            kernel.ensure(),
            image.ensure("guest"),
            run_dir,
            seed=request.seed,
            memory=memory_of(request.scenario),
            timeout_s=timeout_s,
            session=_SESSION,
            needed=needed,
        )
    return Guest(
        kernel.ensure(),
        image.ensure("guest"),
        run_dir,
        clock=place.clock,
        seed=request.seed,
        memory=memory_of(request.scenario),
        timeout_s=timeout_s,
        session=_SESSION,
        channel=channel,
        way=_way(request.reach),
        needed=needed,
    )


@functools.cache
def _say_once(note: str) -> None:
    """Reports a note once, however many runs it applies to."""
    report_error(note)


def _say_what_is_hidden(running: Guest | EmulatedGuest) -> None:
    """Notes which paths the user's programs complained about exist on the host but are hidden in
    the guest."""
    if confinement.fence().name == "none":
        return
    for name in ("client.err", "server.err"):
        with contextlib.suppress(OSError):
            said = _end_of(running.run_dir / name)
            for note in homes.found().missed(said, (running.run_dir, *running.needed)):
                _say_once(note)


def _end_of(said: Path) -> str:
    """Returns the end of what a program said. Raises OSError."""
    return plain_file.end(said, _LAST_WORDS_BYTES).decode(errors="replace")


def _way(reach: Reach | None) -> gateway.Way | None:
    """Returns the guest's connection to what a run reaches outside."""
    return None if reach is None else gateway.Way(reach.listeners, reach.outside.reaches_loopback)


def verdict(running: Running) -> str | None:
    """Returns what went wrong, None if the lab ran to its end."""
    try:
        code = running.exit_code()
    except RuntimeError as error:
        return _noted(str(error), running.run_dir)
    if not isinstance(running, _HostRun):
        _say_what_is_hidden(running)
    if code == 0:
        return _unreadable(running.run_dir)
    with contextlib.suppress(OSError):
        return _noted(outcome.read_error(running.run_dir), running.run_dir)
    return _noted(
        f"the lab ended with {code}; its console: {running.run_dir / 'console.log'}",
        running.run_dir,
    )


def _noted(error: str, run_dir: Path) -> str:
    """Returns the error, of a run that hung with the end of what the client said. Writes it into the
    run directory, for those who look at the run later."""
    if outcome.HUNG in error:
        said = run_dir / "client.err"
        with contextlib.suppress(OSError):
            lines = _end_of(said).strip().splitlines()
            last = [line[:_MOST_CHARACTERS] for line in lines[-_LAST_LINES:]]
            error += f"; the client's last words ({said}):\n  " + "\n  ".join(last or ["(nothing)"])
    with contextlib.suppress(OSError):
        outcome.write_error(error, run_dir)
    return error


def _unreadable(run_dir: Path) -> str | None:
    """Returns what is wrong with the outcome's file, which a program in the guest may have changed."""
    try:
        outcome.read(run_dir)
    except OSError as error:
        return f"the run left no outcome: {error}"
    return None


def run_all(
    requests: Sequence[RunRequest],
    place: Environment,
    parent: Path,
    *,
    parallel: int,
    timeout_s: float | None = None,
    tell: Callable[[RunRequest, float], None] = lambda *_: None,
) -> Iterator[Finished]:
    """Runs every request, at most `parallel` at a time, and yields each as it ends.

    Calls `tell` with each run when it starts, and every second with its share of the payload.
    Runs fewer at a time if the guests would not find enough memory. A guest takes memory as it uses
    it, and dies if there is none. Raises ProgramError, ShareError or RunError if a user's program, a
    shared path, or the program of a further client is missing. If the caller stops early (exception,
    Ctrl-C), running executions are ended.
    """
    for command in {command for one in requests for command in one.commands}:
        located = programs.located(command)  # Fails before the first run begins.
        if place.name == "guest":
            programs.require_x86_64(located)
    for path in {path for one in requests for path in one.share}:
        visible_paths.require(path)
    others = {name for one in requests for name in clients.further(one.scenario, one.client)}
    missing = clients.obstacle(sorted(name for name in others if name is not None), place.name)
    if missing is not None:
        raise RunError(missing)
    if place.name == "guest":
        most = fitting([one.scenario for one in requests], is_emulated=place.is_emulated)
        parallel = min(parallel, most)
    with machine.kept():
        yield from _run_all(requests, place, parent, parallel, timeout_s, tell)


@dataclass
class _Started:
    """Holds a run that was started: its request, when, how much of its payload was carried, and when
    its watchdog fires. In virtual time a run has `lab_limit_s` of the lab's time."""

    request: RunRequest
    begun: float
    carried: PayloadShare
    watchdog_s: float
    lab_limit_s: float
    seen_s: float = 0.0

    def goes_on(self, running: Running) -> bool:
        """Returns whether a run whose watchdog fires is only slow: its lab's clock has moved since the
        last time, and is within its limit. Then the watchdog begins anew. So a busy machine ends no
        run in virtual time."""
        self.carried.now()
        before_s, self.seen_s = self.seen_s, self.carried.lab_s
        if not before_s < self.seen_s <= self.lab_limit_s:
            return False
        running.deadline = time.monotonic() + self.watchdog_s
        return True


def _run_all(
    requests: Sequence[RunRequest],
    place: Environment,
    parent: Path,
    parallel: int,
    timeout_s: float | None,
    tell: Callable[[RunRequest, float], None],
) -> Iterator[Finished]:
    waiting = list(reversed(requests))
    running: dict[Running, _Started] = {}
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                request = waiting.pop()
                run_dir = new_directory(parent, request.label)
                prepare(request, run_dir, place, limit_s=limit_s(request, timeout_s))
                begun = time.monotonic()  # The run's deadline counts from later on.
                most_s = watchdog_s(request, place, timeout_s)
                one = begin(request, run_dir, place, most_s)
                carried = PayloadShare(one.growing_dir, request.scenario)
                lab_limit_s = most_s if place.clock == "virtual" else 0.0
                running[one] = _Started(request, begun, carried, most_s, lab_limit_s)
                tell(request, 0.0)
            next_deadline = min(one.deadline for one in running)
            patience = min(_TOLD_S, max(0.0, next_deadline - time.monotonic()))
            ready, _, _ = select.select(list(running), [], [], patience)
            late = [
                one
                for one, started in running.items()
                if one.deadline <= time.monotonic() and not started.goes_on(one)
            ]
            for one in ready or late:
                started = running.pop(one)
                with contextlib.closing(one):
                    error = verdict(one)
                yield Finished(
                    started.request, one.run_dir, error, time.monotonic() - started.begun
                )
            for started in running.values():
                if started.request.client is not None:  # A command may want none of the payload.
                    tell(started.request, started.carried.now())
    finally:
        for one in running:
            one.close()
