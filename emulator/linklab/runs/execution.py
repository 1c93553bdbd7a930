"""Executes a prepared run directory on the machine that this process runs on.

`linklab run` starts `python -m linklab.runs.execution RUN_DIR` on the host. The guest executes the
same module after boot.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from linklab.core.scratch import scratch_prefix
from linklab.lab.kernel.rtnetlink import Interface
from linklab.lab.network import outside
from linklab.lab.network.lab import Lab, built
from linklab.lab.network.topology import client_host
from linklab.lab.player.control import Inbox
from linklab.lab.player.player import Anew, Player
from linklab.lab.player.signal_file import SignalFile
from linklab.lab.shaping.hfsc_queue import TIMER_SLACK_S
from linklab.links.stack import ScenarioLink, models
from linklab.places.guest import gateway, reproducible_start
from linklab.runs import execution_programs, names, outcome, server_log, working_directory
from linklab.runs.applications import APPLICATIONS
from linklab.runs.clients import preparations
from linklab.runs.clients.preparations import ReadyLab
from linklab.runs.execution_plan import Plan
from linklab.runs.execution_programs import FurtherClient, NextRun
from linklab.runs.outcome import Outcome
from linklab.scenario import ScenarioError

if TYPE_CHECKING:
    from linklab.lab.multipath.multipath import Multipath
    from linklab.lab.programs.traffic import Traffic


class Interrupted(Exception):
    """SIGINT or SIGTERM reached the lab."""


def execute(run_dir: Path, host_root: Path = Path("/")) -> Outcome:
    """Builds the lab that `run_dir` describes, runs its client, and writes the outcome.

    A user's command has `host_root` as its root, so it uses the host's files and libraries. Raises
    LabError if the lab cannot be built or the server dies. The lab is removed in any case.
    """
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        scratch = enter(tempfile.TemporaryDirectory(prefix=scratch_prefix("run")))
        plan = Plan.read(run_dir, host_root, Path(scratch))
        links = models(plan.scenario, plan.job.seed)
        names.give(plan.job, plan.scenario.network.families, host_root, plan.scratch)
        lab, programs = enter(_lab(plan, links))
        player = _player(plan, lab, links, programs)
        ready = ReadyLab(lab, player, plan.task)
        argv = execution_programs.client_command(plan, lab)
        enter(_prepared(plan, ready))
        further = [_further(one, number, lab) for number, one in enumerate(plan.further(), 2)]
        plans = [one.plan for one in further]
        start_server = execution_programs.server_starter(plan, lab, plans)
        enter(_packets_recorded(plan, lab))
        enter(_bursts_recorded(plan, lab, player))
        multipath = _multipath(plan, ready, stack)
        recorders = [
            _multipath(one.plan, ReadyLab(one.lab, player, one.plan.task), stack) for one in further
        ]
        _even(plan)
        stack.callback(working_directory.keep, run_dir)
        serving = start_server()
        stack.callback(_write_requests, plan, lab, player)
        stack.callback(serving.stop)
        enter(execution_programs.proxy(plan, lab, plans))
        for name, link in lab.links.items():
            link.serve(breaks=name in plan.scenario.breaking_links)
        before = [_interfaces(one) for one in (lab, *(one.lab for one in further))]
        flows = enter(_traffic(plan, lab))
        _even(plan)
        with _playing(player), _flowing(flows, player, run_dir):
            exit_code, elapsed_ns = execution_programs.run_client(
                plan, lab, player, argv, serving, further
            )
        ended = _outcome(plan, lab, exit_code, elapsed_ns, before[0])
        if multipath is not None:
            multipath.write(run_dir, elapsed_ns / 1e9)
        for one, recorder, devices in zip(further, recorders, before[1:], strict=True):
            _write_further(one, recorder, devices)
    outcome.write(ended, run_dir)
    return ended


@contextlib.contextmanager
def _lab(
    plan: Plan, links: dict[str, ScenarioLink]
) -> Iterator[tuple[Lab, list[Callable[[], None]]]]:
    """Yields the lab with its links in their first state, with host names and connections to the
    outside, and functions that start its own programs anew."""
    programs = []
    states = {name: model.at(0.0) for name, model in links.items()}
    slack_s = TIMER_SLACK_S if plan.job.clock == "real" else 0.0
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(
            built(
                plan.scenario,
                states,
                plan.job.seed,
                slack_s,
                plan.first_link,
                takes_commands=plan.job.clock == "real",
            )
        )
        names.answer(stack, lab, plan.job, plan.scenario.network.families)
        if plan.job.outside is not None:
            in_guest = plan.job.place == "guest"
            if in_guest:
                outside.open_device(gateway.DEVICE, gateway.GUEST, gateway.GATEWAY)
            log = plan.run_dir / "proxy.log"
            joined = outside.joined(
                lab,
                plan.scenario,
                plan.job.outside,
                plan.job.multilink,
                log,
                in_guest=in_guest,
            )
            programs.append(stack.enter_context(joined))
        yield lab, programs


def _player(
    plan: Plan, lab: Lab, links: dict[str, ScenarioLink], programs: list[Callable[[], None]]
) -> Player:
    stays = ["the scenario's traffic goes on"] if plan.scenario.traffic else []
    return Player(
        lab,
        links,
        plan.run_dir,
        sample_s=plan.scenario.sample_s,
        counts_payload=any(event.after_bytes is not None for event in plan.scenario.events),
        signal=SignalFile(Path(plan.task.wireless)),
        inbox=Inbox(plan.run_dir) if plan.job.clock == "real" else None,
        on_next=_go_on,
        anew=Anew(functools.partial(models, plan.scenario, plan.job.seed), programs, stays),
        may_be_late=plan.job.live,
        patience_s=plan.patience_s,
        is_shared=bool(plan.scenario.shared_links),
    )


def _go_on() -> NoReturn:
    raise NextRun


def _prepared(plan: Plan, ready: ReadyLab) -> contextlib.AbstractContextManager[None]:
    """Returns the client's changes to the lab."""
    if plan.client is None or plan.client.prepare is None:
        return contextlib.nullcontext()
    return plan.client.prepare(ready)


@contextlib.contextmanager
def _packets_recorded(plan: Plan, lab: Lab) -> Iterator[None]:
    """Records the packets of the links that the job names."""
    if not plan.job.pcap:
        yield
        return
    from linklab.lab.network import packets  # Few runs need it.

    devices = {name: lab.links[name].path.device for name in plan.job.pcap}
    for name in devices:
        lab.links[name].fill_checksums()
    with packets.recorded(lab.client.node.namespace, devices, plan.run_dir):
        yield


def _bursts_recorded(
    plan: Plan, lab: Lab, player: Player
) -> contextlib.AbstractContextManager[None]:
    """Returns what records bursts of packets, and round trips for a workload whose figures have them.
    A file's download or upload is one burst. Packets of several clients cannot be told apart."""
    name = plan.scenario.workload.name
    if name not in APPLICATIONS or len(plan.scenario.clients) > 1:
        return contextlib.nullcontext()
    from linklab.lab.network import seen_packets  # Few runs need it.

    return seen_packets.recorded(lab, plan.run_dir, player.now_s, name)


def _even(plan: Plan) -> None:
    if plan.job.clock == "virtual":
        reproducible_start.align()


def _further(plan: Plan, number: int, lab: Lab) -> FurtherClient:
    own = lab.seen_from(client_host(number))
    return FurtherClient(plan, own, execution_programs.client_command(plan, own))


def _multipath(plan: Plan, ready: ReadyLab, stack: contextlib.ExitStack) -> Multipath | None:
    """Makes Multipath TCP use the links of a client that speaks it, until the stack is left."""
    use = plan.path_use
    return None if use is None else stack.enter_context(preparations.multipath_tcp(ready, use))


def _write_further(
    one: FurtherClient, multipath: Multipath | None, before: dict[str, Interface]
) -> None:
    """Writes the outcome of a further client into its directory."""
    assert one.process is not None
    ended = _outcome(one.plan, one.lab, one.process.returncode, one.elapsed_ns, before)
    if multipath is not None:
        multipath.write(one.plan.run_dir, one.elapsed_ns / 1e9)
    outcome.write(ended, one.plan.run_dir)


def _traffic(plan: Plan, lab: Lab) -> contextlib.AbstractContextManager[Traffic | None]:
    """Returns the programs of the scenario's traffic, None without traffic."""
    if not plan.scenario.traffic:
        return contextlib.nullcontext()
    from linklab.lab.programs import traffic  # Few runs need it.

    return traffic.ready(lab, plan.scenario, plan.job.seed, plan.run_dir)


@contextlib.contextmanager
def _flowing(flows: Traffic | None, player: Player, run_dir: Path) -> Iterator[None]:
    """Lets the scenario's traffic flow during the block, and records what became of it."""
    if flows is None:
        yield
        return
    flows.begin(player.start_ns)
    yield
    flows.end(run_dir)


@contextlib.contextmanager
def _playing(player: Player) -> Iterator[None]:
    player.start()
    try:
        yield
        player.let_out()
    finally:
        player.stop()


def _write_requests(plan: Plan, lab: Lab, player: Player) -> None:
    """Records what the server has logged until its end, in the scenario's time."""
    start_unix_s = (time.time_ns() - time.monotonic_ns() + player.start_ns) / 1e9
    server_log.write(
        plan.run_dir, {name: link.path for name, link in lab.links.items()}, start_unix_s
    )


def _interfaces(lab: Lab) -> dict[str, Interface]:
    return {name: lab.client.interface(link.path.device) for name, link in lab.links.items()}


def _outcome(
    plan: Plan, lab: Lab, exit_code: int, elapsed_ns: int, before: dict[str, Interface]
) -> Outcome:
    output = Path(plan.task.output)
    after = _interfaces(lab)
    return Outcome(
        exit_code=exit_code,
        elapsed_ns=elapsed_ns,
        received_bytes={
            name: one.received_bytes - before[name].received_bytes for name, one in after.items()
        },
        sent_bytes={name: one.sent_bytes - before[name].sent_bytes for name, one in after.items()},
        output_bytes=output.stat().st_size if output.exists() else None,
        output_sha256=_sha256(output) if plan.checks_output else None,
        uploaded_sha256=_sha256(plan.uploaded),
        shaper=next(iter(lab.links.values())).shaper,
    )


def _sha256(path: Path) -> str | None:
    """Returns a file's SHA-256, None if there is no file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def _interrupt(signum: int, _: FrameType | None) -> None:
    for one in _INTERRUPTS:  # A second signal must not disturb the clean-up.
        signal.signal(one, lambda *_: None)
    raise Interrupted(signal.Signals(signum).name)


def main(arguments: list[str]) -> int:
    """Executes the run directory that the only argument names. Returns 0, or prints one line of
    error and returns 1."""
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
