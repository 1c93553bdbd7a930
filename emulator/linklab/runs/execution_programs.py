"""Builds the commands of a run's server and client, starts both, and ends the client."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from msgspec import UNSET

from linklab.core.placeholders import filled
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.lab import Lab
from linklab.lab.network.services import HTTP_PORT, HTTPS_PORT
from linklab.lab.network.topology import server_addresses
from linklab.lab.player.player import Player
from linklab.lab.programs import own_server, program_root, server, server_proxy, terminal
from linklab.lab.programs.own_server import ServerWatch
from linklab.lab.programs.server import Server
from linklab.runs import environment, outcome
from linklab.runs.execution_plan import Plan

Stream = IO[bytes] | int


_ONLY_H2O = "network: proxy: a proxy stands before H2O alone, and this run has another server"


class NextRun(Exception):
    """A user of a live lab asked for the next run."""


def server_starter(plan: Plan, lab: Lab, further: Sequence[Plan] = ()) -> Callable[[], Server]:
    """Returns a function that starts the run's server, the user's or H2O, for all clients.

    Raises LabError if a user's server would also have to answer without TLS.
    """
    if plan.uploads is not None:
        plan.scratch.chmod(0o711)
        plan.uploads.mkdir()
        plan.uploads.chmod(0o777)  # H2O may run as another user.
    if plan.client is not None and plan.client.server:
        if plan.scenario.network.proxy_rtt_s is not None:
            raise LabError(_ONLY_H2O)
        return functools.partial(_start_peers_server, plan, lab)
    if plan.as_written.server is None:
        return functools.partial(
            server.start,
            lab.server,
            Path(plan.job.certificate),
            Path(plan.job.key),
            Path(plan.job.payload),
            plan.run_dir,
            mptcp=any(one.path_use is not None for one in (plan, *further)),
            uploads=plan.uploads,
            plain=any(one.needs_plain_http for one in (plan, *further)),
            addresses=(
                server_addresses(plan.scenario.network.families)
                if plan.scenario.network.proxy_rtt_s is None
                else (server_proxy.BEHIND,)
            ),
        )
    if plan.needs_plain_http:
        raise LabError(
            f"{plan.as_written.client} needs HTTP without TLS, which only H2O is set up for"
        )
    if plan.scenario.network.proxy_rtt_s is not None:
        raise LabError(_ONLY_H2O)
    home = plan.scratch / "server"
    values = environment.for_server(plan.as_written, plan.scenario)
    values["directory"] = Path(plan.job.payload).parent  # A server's own user can read it.
    return functools.partial(
        own_server.start,
        lab.server,
        [
            *program_root.at(plan.host_root, lab.server, plan.directory),
            *(filled(word, values) for word in plan.as_written.server.command),
        ],
        plan.as_written.server.port,
        plan.run_dir,
        environment=environment.own(plan.as_written.environment, home, values),
        home=home,
        directory=home if plan.host_root != Path("/") else plan.directory,
        links={name: link.families for name, link in plan.scenario.links.items()},
    )


def proxy(
    plan: Plan, lab: Lab, further: Sequence[Plan] = ()
) -> contextlib.AbstractContextManager[None]:
    """Returns the proxy before H2O, if the scenario has one."""
    plans = (plan, *further)
    ports = [HTTPS_PORT, *([HTTP_PORT] if any(one.needs_plain_http for one in plans) else [])]
    mptcp = any(one.path_use is not None for one in plans)
    return server_proxy.before(lab.server, plan.scenario, ports, mptcp=mptcp)


def _start_peers_server(plan: Plan, lab: Lab) -> Server:
    """Starts the server that belongs to the client. Its end is an error, as H2O's."""
    assert plan.client is not None
    values = {**environment.for_server(plan.job, plan.scenario), "peers": plan.task.peers}
    home = plan.scratch / "server"
    started = own_server.start(
        lab.server,
        [filled(word, values) for word in plan.client.server],
        HTTPS_PORT,
        plan.run_dir,
        environment=environment.own(environment.of_here(), home, {}),
        home=home,
        directory=plan.scratch,
        links={name: link.families for name, link in plan.scenario.links.items()},
    )
    return dataclasses.replace(started, name=f"the server of {plan.client.name}", again=None)


def client_command(plan: Plan, lab: Lab) -> list[str]:
    """Returns the client's command. A user's command runs from the host's files."""
    if plan.client is not None:
        return plan.client.command(plan.task)
    job = plan.as_written
    own = [filled(word, environment.for_client(job, plan.task)) for word in job.command or []]
    enter = program_root.at(plan.host_root, _client_host(plan, lab), plan.directory)
    if job.terminal is None:
        return [*enter, *own]
    return [shutil.which("setsid") or "setsid", "--ctty", *enter, *own]


def _client_host(plan: Plan, lab: Lab) -> Host:
    """Returns the host on which the client's program runs. A terminal may be on the server."""
    at = plan.client_job.terminal
    return lab.server if at is not None and at.on == "server" else lab.client


@dataclass
class FurtherClient:
    """A client that runs beside the first one, on a host of its own, which `lab` has as its client."""

    plan: Plan
    lab: Lab
    argv: list[str]
    process: subprocess.Popen[bytes] | None = None
    elapsed_ns: int = 0
    _started_ns: int = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Starts its program, and ends it after the block."""
        with _streams(self.plan) as streams:
            self._started_ns = time.monotonic_ns()
            self.process = _started(self.plan, self.lab, self.argv, streams)
            try:
                yield
            finally:
                end(self.process)

    def note_end(self) -> None:
        """Notes that its program has ended."""
        self.elapsed_ns = time.monotonic_ns() - self._started_ns


def run_client(
    plan: Plan,
    lab: Lab,
    player: Player,
    argv: list[str],
    serving: Server,
    further: Sequence[FurtherClient] = (),
) -> tuple[int, int]:
    """Runs the client and further ones to their ends while the links change. Returns the client's
    exit code and nanoseconds.

    Raises LabError if H2O dies first. The end of a user's server is an event.
    """
    if plan.job.shift_s:
        player.play_until(plan.job.shift_s)
    if plan.job.limit_s is not UNSET:
        player.at(player.now_s() + plan.job.limit_s, functools.partial(_hung, plan.job.limit_s))
    with _streams(plan) as streams:
        started_ns = time.monotonic_ns()
        process = _started(plan, lab, argv, streams)
        ends_ns: list[int] = []
        try:
            with (
                _watched(plan, player, process, serving) as last_look,
                contextlib.closing(_server_watch(plan, player, serving)) as watch,
                contextlib.ExitStack() as all_,
            ):
                for one in further:
                    all_.enter_context(one.running())
                _play(player, process, watch, last_look, further, ends_ns)
        finally:
            end(process)
        ended_ns = ends_ns[0] if ends_ns else time.monotonic_ns()
        return process.returncode, ended_ns - started_ns


def _hung(limit_s: float, _: float) -> NoReturn:
    raise LabError(
        f"the client was {outcome.HUNG} {limit_s:.4g} s of the lab's time and was ended "
        "(--timeout allows more)"
    )


def _started(
    plan: Plan, lab: Lab, argv: list[str], streams: tuple[Stream, Stream, Stream]
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = streams
    return _client_host(plan, lab).start(
        argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        environment=environment.of_client(plan.client_job, plan.task, plan.scratch),
        directory=plan.scratch if plan.host_root != Path("/") else plan.directory,
    )


@contextlib.contextmanager
def _streams(plan: Plan) -> Iterator[tuple[Stream, Stream, Stream]]:
    """Yields the input, output and errors of the client's program: files, or its terminal."""
    if plan.job.terminal is None:
        out_file, err_file = plan.run_dir / "client.out", plan.run_dir / "client.err"
        with out_file.open("wb") as out, err_file.open("wb") as err:
            yield subprocess.DEVNULL, out, err
        return
    joined = terminal.PseudoTerminal(terminal.channel(), plan.job.terminal.window)
    with contextlib.closing(joined):
        yield (joined.program_end,) * 3


@contextlib.contextmanager
def _watched(
    plan: Plan, player: Player, client: subprocess.Popen[bytes], serving: Server
) -> Iterator[Callable[[], None]]:
    """Makes the player sample processor and memory use of client and server on the real clock.
    Yields a function that takes a last sample. In virtual time nothing is sampled,
    because computing takes no time there."""
    if plan.job.clock == "virtual":
        yield lambda: None
        return
    from linklab.lab.programs import processes  # psutil is slow to load.

    pids = {"client": client.pid, "server": serving.process.pid}
    with contextlib.closing(processes.ProcessWatch(plan.run_dir, pids)) as watch:
        watch.look(player.now_s())
        player.every(processes.PERIOD_S, watch.look)
        yield lambda: watch.look(player.now_s())


def _server_watch(plan: Plan, player: Player, serving: Server) -> ServerWatch:
    own = plan.job.server
    after_s = own.restarts_after_s if own and own.restarts_after_s is not UNSET else None
    return ServerWatch(serving, lambda what: player.write_event(player.now_s(), "", what), after_s)


def _play(
    player: Player,
    client: subprocess.Popen[bytes],
    watch: ServerWatch,
    last_look: Callable[[], None],
    further: Sequence[FurtherClient],
    ends_ns: list[int],
) -> None:
    """Plays until all clients have ended. With further ones, adds the time of the client's end to
    `ends_ns`. Raises LabError if H2O dies first."""
    clients = [client, *(one.process for one in further if one.process is not None)]
    descriptors = [os.pidfd_open(process.pid) for process in clients]
    left = list(descriptors)
    try:
        while left:
            ended = player.play([*left, *watch.descriptors])
            if further and descriptors[0] in ended:
                ends_ns.append(time.monotonic_ns())
            for one, descriptor in zip(further, descriptors[1:], strict=True):
                if descriptor in ended:
                    one.note_end()
            left = [one for one in left if one not in ended]
            if left and not set(ended).isdisjoint(watch.descriptors):
                watch.look()
        last_look()
    except NextRun:
        end(client)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    client.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks the client to end, gives it two seconds, then kills it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
