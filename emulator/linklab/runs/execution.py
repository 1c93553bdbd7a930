"""Executes a prepared run directory in the place where this process is.

`python -m linklab.runs.execution RUN_DIR` is what `linklab run` starts on the host and
what the guest executes after boot: there is no second implementation.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import IO, Final

import msgspec

from linklab.core.link_kinds import LTE, WIFI
from linklab.core.paths import GUEST_FILES
from linklab.core.placeholders import filled
from linklab.core.scratch import scratch_prefix
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.kernel.rtnetlink import Interface
from linklab.lab.multipath.multipath import Multipath
from linklab.lab.multipath.path_use import PathUse, link_of_kind
from linklab.lab.network import outside
from linklab.lab.network.lab import Host, Lab, LabError, built
from linklab.lab.player.control import Inbox
from linklab.lab.player.player import Player
from linklab.lab.player.signal_file import SignalFile
from linklab.lab.programs import own_server, program_root, server, terminal
from linklab.lab.shaping.rate_queue import TIMER_SLACK_S
from linklab.links.stack import models
from linklab.places.guest import footing, gateway
from linklab.places.guest.init import BIND, mount, unmount
from linklab.runs import environment, names, outcome
from linklab.runs import job as manifest
from linklab.runs.clients import ClientUnderTest, Task, client_of
from linklab.runs.job import Job
from linklab.runs.outcome import Outcome
from linklab.scenario import Scenario, ScenarioError
from linklab.scenario.workload import UPLOAD, WHOLE_FILE


class Interrupted(Exception):
    """SIGINT or SIGTERM reached the lab."""


class _Next(Exception):
    """Somebody who watches wants the next run."""


def _go_on() -> None:
    raise _Next


_UPLOADS: Final = "uploads"
"""Where below a run's own directory its server keeps what it gets."""

StartServer = Callable[[], server.Server]

_SILENCE_S: Final = 1000.0


def _path_use(scenario: Scenario, contestant: ClientUnderTest | None) -> PathUse | None:
    """How Multipath TCP is to use the links; None for plain TCP."""
    if contestant is not None and contestant.multipath is not None:
        return contestant.multipath
    return PathUse() if scenario.tcp.mptcp else None


def _use_links(lab: Lab, multipath: Multipath, player: Player, use: PathUse, task: Task) -> None:
    """Has Multipath TCP use the links so, from the first connection on."""
    links = task.scenario.links
    first = use.first_of(links)
    if not use.control:
        multipath.use_all(backups_of=first if use.backups else None)
        return
    from linklab.lab.multipath import path_control  # Few runs need them.
    from linklab.runs import run_energy

    control: path_control.Control
    if use.needs_energy:
        for host in (lab.client, lab.server):  # A window is kept while its subflow rests.
            write_sysctls(host.node.namespace, {"net.ipv4.tcp_slow_start_after_idle": "0"})
        model = run_energy.model_of(Path(task.run_dir))
        assert model is not None  # Request has seen to it.
        if use.control == "schedule":
            control = path_control.ScheduleControl(lab, multipath, player, model, task.scenario)
        else:
            lte = link_of_kind(links, LTE)
            control = path_control.EnergyControl(lab, multipath, player, model, wifi=first, lte=lte)
    else:
        control = path_control.SinglePath(lab, multipath, player, first=first)
    path_control.follow(control, player)


def _help_over_lte(
    stack: contextlib.ExitStack,
    lab: Lab,
    player: Player,
    scenario: Scenario,
    contestant: ClientUnderTest,
) -> None:
    """Has LTE carry what the contestant has it carry for Wi-Fi's connections: their acknowledgements,
    or, where Wi-Fi is silent, what their senders are to be told."""
    from linklab.lab.multipath import path_control  # Few runs need them.
    from linklab.lab.super_aggregation.ack_offload import AckOffload
    from linklab.lab.super_aggregation.blackout_freeze import BlackoutFreeze

    of, over = (link_of_kind(scenario.links, kind) for kind in (WIFI, LTE))
    helper = BlackoutFreeze if contestant.freezes else AckOffload
    control = stack.enter_context(contextlib.closing(helper(lab, player, of=of, over=over)))
    path_control.follow(control, player)


def _aggregate_acks(lab: Lab, scenario: Scenario, scratch: Path) -> None:
    """Has the client acknowledge many packets of Wi-Fi at a time."""
    from linklab.lab.super_aggregation import ack_aggregation  # Few runs need it.

    sysfs = scratch / "sysfs"
    sysfs.mkdir()
    with inside(lab.client.node.namespace):  # A sysfs has the interfaces of who mounts it.
        mount("sysfs", str(sysfs), "sysfs")
    try:
        ack_aggregation.aggregate(lab, link_of_kind(scenario.links, WIFI), sysfs)
    finally:
        unmount(str(sysfs))
        sysfs.rmdir()


def _interfaces(lab: Lab) -> dict[str, Interface]:
    return {name: lab.client.interface(link.path.device) for name, link in lab.links.items()}


Stream = IO[bytes] | int


@contextlib.contextmanager
def _streams(job: Job, run_dir: Path) -> Iterator[tuple[Stream, Stream, Stream]]:
    """The input, output and errors of the client's program: files, or its terminal."""
    if job.terminal is None:
        with (run_dir / "client.out").open("wb") as out, (run_dir / "client.err").open("wb") as err:
            yield subprocess.DEVNULL, out, err
        return
    joined = terminal.PseudoTerminal(terminal.channel(), job.terminal.window)
    with contextlib.closing(joined):
        yield (joined.program_end,) * 3


def _watch(
    stack: contextlib.ExitStack,
    player: Player,
    job: Job,
    run_dir: Path,
    client: subprocess.Popen[bytes],
    serving: server.Server,
) -> Callable[[], None]:
    """Has the player sample what client and server use, where computing takes time; how to take a
    last sample. In virtual time it does not as much as look at the clock."""
    if job.clock == "virtual":
        return lambda: None
    from linklab.lab.programs import processes  # psutil is slow to load.

    watch = processes.ProcessWatch(run_dir, {"client": client.pid, "server": serving.process.pid})
    stack.callback(watch.close)
    watch.look(player.now_s())
    player.every(processes.PERIOD_S, watch.look)
    return lambda: watch.look(player.now_s())


def _play(
    player: Player,
    client: subprocess.Popen[bytes],
    serving: server.Server,
    last_look: Callable[[], None],
) -> None:
    """Plays until the client ends; LabError when the server dies first."""
    descriptors = [os.pidfd_open(process.pid) for process in (client, serving.process)]
    waiting = list(descriptors)
    try:
        while descriptors[0] not in (ended := player.play(waiting)):
            serving.check()
            waiting = [one for one in waiting if one not in ended]
        last_look()
    except _Next:
        _end(client)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    client.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the client to end, gives it two seconds, then kills it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _held(host_root: Path, job: Job) -> Job:
    """The job with its files at places that are the same on every machine, where the host's root is
    another: a client's course may change with the length of a path among its arguments. They are
    there for programs whose root is the host's, too."""
    if host_root == Path("/"):
        return job
    held, files = {}, {}
    for name in ("payload", "multilink", "certificate_authority", "certificate", "key"):
        file = Path(getattr(job, name))
        place = GUEST_FILES / name
        if name == "payload":
            place /= file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        held[name] = str(place)
        files[held[name]] = host_root / file.relative_to("/")
    _lay_over(files, {Path("/"), host_root})
    return msgspec.structs.replace(job, **held)


def execute(run_dir: Path, host_root: Path = Path("/")) -> Outcome:
    """Builds the lab that `run_dir` describes, runs its client, writes what came of it.

    A user's command has `host_root` as its root: it runs from the host's files, with the host's
    libraries; all else is this place's own.

    Raises LabError when the lab cannot be built or the server dies; whatever
    happens, nothing of the lab is left.
    """
    as_written = manifest.read(run_dir)
    job = _held(host_root, as_written)
    scenario = manifest.scenario_of(run_dir)
    contestant = client_of(job.contestant) if job.contestant else None
    with contextlib.ExitStack() as stack:
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=scratch_prefix("run")))
        )
        contestants_own = job if contestant else as_written
        task = environment.task_of(contestants_own, scenario, run_dir, scratch / "payload")
        links = models(scenario, job.seed)
        states = {name: model.at(0.0) for name, model in links.items()}
        slack_s = TIMER_SLACK_S if job.clock == "real" else 0.0
        names.give(job, host_root, scratch)
        use = _path_use(scenario, contestant)
        first = None if use is None else use.first_of(scenario.links)
        lab = stack.enter_context(built(scenario, states, job.seed, slack_s, first))
        names.answer(stack, lab, job)
        if job.outside is not None:
            _join_outside(stack, lab, scenario, job, run_dir)
        player = Player(
            lab,
            links,
            run_dir,
            sample_s=scenario.sample_s,
            counts_payload=any(event.after_bytes is not None for event in scenario.events),
            signal=SignalFile(Path(task.wireless)),
            inbox=Inbox(run_dir) if job.clock == "real" else None,
            on_next=_go_on,
            may_be_late=job.live,
            patience_s=_patience_s(job, scenario),
        )
        argv = (
            contestant.command(task)
            if contestant
            else _user_command(lab, as_written, task, host_root, scratch)
        )
        if contestant is not None and (contestant.offloads_acks or contestant.freezes):
            _help_over_lte(stack, lab, player, scenario, contestant)
        if contestant is not None and contestant.aggregates_acks:
            _aggregate_acks(lab, scenario, scratch)
        uploads = _uploads(scratch) if scenario.workload.sends else None
        start_server = _server(
            lab,
            job,
            as_written,
            host_root,
            run_dir,
            scratch,
            uploads,
            mptcp=use is not None,
            plain=contestant is not None and contestant.fetches_losses,
        )
        if job.pcap:
            from linklab.lab.network import packets  # Few runs need it.

            devices = {name: lab.links[name].path.device for name in job.pcap}
            for name in devices:
                lab.links[name].fill_checksums()
            namespace = lab.client.node.namespace
            stack.enter_context(packets.recorded(namespace, devices, run_dir))
        ended = _run_client(stack, lab, player, contestants_own, use, task, argv, start_server)
    outcome.write(ended, run_dir)
    return ended


def _lay_over(files: Mapping[str, Path], roots: set[Path]) -> None:
    """Has the lab's programs find these files where others lie; this process' mounts are its own."""
    for place, file in files.items():
        for root in roots:
            path = root / place.lstrip("/")
            if path.exists():
                mount(str(file), str(path), "", BIND)


def _join_outside(
    stack: contextlib.ExitStack, lab: Lab, scenario: Scenario, job: Job, run_dir: Path
) -> None:
    assert job.outside is not None
    way_in = "127.0.0.1"
    if job.place == "guest":
        outside.open_device(gateway.DEVICE, gateway.GUEST, gateway.GATEWAY)
        way_in = "0.0.0.0"
    log = run_dir / "proxy.log"
    stack.enter_context(outside.joined(lab, scenario, job.outside, job.multilink, way_in, log))


def _user_command(lab: Lab, job: Job, task: Task, host_root: Path, directory: Path) -> list[str]:
    """The user's command as it is started on its host, from the host's files."""
    own = [filled(word, environment.for_client(job, task)) for word in job.command or []]
    if job.terminal is None:
        return [*program_root.at(host_root, lab.client, directory), *own]
    there = Path(job.terminal.directory)
    if not (host_root / there.relative_to("/")).is_dir():  # It is hidden.
        there = directory
    enter = program_root.at(host_root, _user_host(lab, job), there)
    return [shutil.which("setsid") or "setsid", "--ctty", *enter, *own]


def _user_host(lab: Lab, job: Job) -> Host:
    at_server = job.terminal is not None and job.terminal.on == "server"
    return lab.server if at_server else lab.client


def _uploads(scratch: Path) -> Path:
    """A directory for whomever H2O becomes."""
    scratch.chmod(0o711)
    directory = scratch / _UPLOADS
    directory.mkdir()
    directory.chmod(0o777)
    return directory


def _server(
    lab: Lab,
    seen: Job,
    as_written: Job,
    host_root: Path,
    run_dir: Path,
    scratch: Path,
    uploads: Path | None,
    *,
    mptcp: bool,
    plain: bool,
) -> StartServer:
    """What starts the run's server: the user's, from the host's files, or H2O, which gets the job
    with paths as they are seen from here. Raises LabError for a server of the user's that would have
    to be there without TLS, too."""
    if as_written.server is None:
        return functools.partial(
            server.start,
            lab.server,
            Path(seen.certificate),
            Path(seen.key),
            Path(seen.payload),
            run_dir,
            mptcp=mptcp,
            uploads=uploads,
            plain=plain,
        )
    if plain:
        raise LabError(
            f"{as_written.contestant} needs HTTP without TLS, which only H2O is set up for"
        )
    directory = scratch / "server"
    values = environment.for_server(as_written)
    return functools.partial(
        own_server.start,
        lab.server,
        [
            *program_root.at(host_root, lab.server, directory),
            *(filled(word, values) for word in as_written.server.command),
        ],
        as_written.server.port,
        run_dir,
        environment=environment.own(as_written.environment, directory, values),
        directory=directory,
    )


def _run_client(
    stack: contextlib.ExitStack,
    lab: Lab,
    player: Player,
    job: Job,
    use: PathUse | None,
    task: Task,
    argv: list[str],
    start_server: StartServer,
) -> Outcome:
    run_dir, scratch = Path(task.run_dir), Path(task.output).parent
    multipath = None
    if use is not None:
        multipath = stack.enter_context(contextlib.closing(Multipath(lab)))
        _use_links(lab, multipath, player, use, task)
    if job.clock == "virtual":
        footing.even()
    serving = start_server()
    stack.callback(serving.stop)
    before = _interfaces(lab)
    if job.clock == "virtual":
        footing.even()
    player.start()
    try:
        if job.shift_s:
            player.play_until(job.shift_s)
        with _streams(job, run_dir) as (stdin, stdout, stderr):
            started_ns = time.monotonic_ns()
            process = _user_host(lab, job).start(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                environment=environment.of_client(job, task, scratch),
                directory=scratch,
            )
            watch = _watch(stack, player, job, run_dir, process, serving)
            try:
                _play(player, process, serving, watch)
            finally:
                _end(process)
            elapsed_ns = time.monotonic_ns() - started_ns
    finally:
        player.stop()
    after = _interfaces(lab)
    if multipath is not None:
        multipath.write(run_dir, elapsed_ns / 1e9)
    output = Path(task.output)
    return Outcome(
        exit_code=process.returncode,
        elapsed_ns=elapsed_ns,
        received_bytes={
            name: one.received_bytes - before[name].received_bytes for name, one in after.items()
        },
        sent_bytes={name: one.sent_bytes - before[name].sent_bytes for name, one in after.items()},
        output_bytes=output.stat().st_size if output.exists() else None,
        output_sha256=_sha256(output) if _is_for_the_lab_to_check(job) else None,
        uploaded_sha256=_sha256(scratch / _UPLOADS / Path(job.payload).name),
    )


def _patience_s(job: Job, scenario: Scenario) -> float:
    """For how long nothing may pass in a download or upload: no TCP of Linux is silent for so long
    and goes on, for it gives up after 925 s (tcp_retries2). Somebody who watches a film may be."""
    moves_a_file = scenario.workload.name in (WHOLE_FILE, UPLOAD)
    return _SILENCE_S if job.contestant and moves_a_file and job.clock == "virtual" else math.inf


def _is_for_the_lab_to_check(job: Job) -> bool:
    """Whether a peer's program writes the file: nobody has told that what is in it. Our own compare
    it with the SHA-256 that they are told, and a program of the user's may write what it wants."""
    return job.contestant is not None and client_of(job.contestant).program is not None


def _sha256(path: Path) -> str | None:
    """Of a file, if it is there."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def _interrupt(signum: int, _: FrameType | None) -> None:
    for one in _INTERRUPTS:  # A second one must not disturb the clean-up.
        signal.signal(one, lambda *_: None)
    raise Interrupted(signal.Signals(signum).name)


def main(arguments: list[str]) -> int:
    """Executes the run directory named by the one argument; 0, or 1 with one line of error."""
    for signum in _INTERRUPTS:
        signal.signal(signum, _interrupt)
    run_dir = Path(arguments[0])
    try:
        execute(run_dir, *map(Path, arguments[1:]))
    except (OSError, RuntimeError, ScenarioError) as error:
        outcome.write_error(str(error), run_dir)
        print(f"linklab: {error}", file=sys.stderr)
        return 1
    except Interrupted as error:
        outcome.write_error(f"interrupted by {error}", run_dir)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
