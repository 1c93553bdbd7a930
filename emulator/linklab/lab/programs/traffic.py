"""Runs the programs that send and receive a scenario's traffic, and records what became of it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.ip_family import in_family
from linklab.core.records import FILES, TrafficRecord, line
from linklab.lab.network.hosts import Host, LabError
from linklab.lab.network.lab import Lab
from linklab.lab.network.topology import OTHER, SERVER_ADDRESS
from linklab.scenario import Scenario
from linklab.scenario.traffic import TrafficFlow
from linklab.traffic.counted import RunTimes, record
from linklab.traffic.task import PROGRAM, EndTask, tasks

ERRORS: Final = "traffic.err"
"""The file of a run directory with the programs' errors."""


@dataclass(frozen=True)
class _End:
    """One end of a flow, as it runs."""

    where: str
    process: subprocess.Popen[bytes]
    log: Path

    def tell(self, start_ns: int) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `counts` says why.
            self.process.stdin.write(b"%d\n" % start_ns)
            self.process.stdin.flush()

    def wait_until_ready(self) -> None:
        """Waits until it has opened its sockets. Raises LabError if it has ended."""
        assert self.process.stdout is not None
        if self.process.stdout.readline() != b"\n":
            self._fail()

    def counts(self) -> Mapping[str, int]:
        """Returns what it has counted up to its end. Raises LabError if it has failed."""
        said, _ = self.process.communicate()
        if self.process.returncode != 0:
            self._fail()
        found: Mapping[str, int] = json.loads(said)
        return found

    def _fail(self) -> None:
        self.process.wait()
        said = self.log.read_text(errors="replace").strip().splitlines()
        raise LabError(f"{self.where}: {said[-1] if said else 'its program ended'}")


class Traffic:
    """The programs of all flows: of each its server's end and its other end."""

    def __init__(self, flows: tuple[TrafficFlow, ...], ends: list[tuple[_End, _End]]) -> None:
        self._flows, self._ends = flows, ends
        self._start_ns = 0

    def begin(self, start_ns: int) -> None:
        """Starts all flows of a scenario that began at this time of the monotonic clock."""
        self._start_ns = start_ns
        for pair in self._ends:
            for one in pair:
                one.tell(start_ns)

    def end(self, run_dir: Path) -> None:
        """Ends all flows, and writes `traffic.jsonl`. Raises LabError if a program has failed."""
        t_s = (time.monotonic_ns() - self._start_ns) / 1e9
        for pair in self._ends:
            for one in pair:
                one.process.terminate()
        found = []
        times = RunTimes(self._start_ns, t_s)
        for number, (flow, pair) in enumerate(zip(self._flows, self._ends, strict=True), 1):
            server, other = (one.counts() for one in pair)
            found.append(record(flow, number, times, server, other))
        (run_dir / FILES[TrafficRecord]).write_bytes(b"".join(map(line, found)))


@contextlib.contextmanager
def ready(lab: Lab, scenario: Scenario, seed: int, run_dir: Path) -> Iterator[Traffic]:
    """Starts the programs of all flows, which wait for `begin`. Ends them after the block."""
    devices = {name: link.path.device for name, link in lab.links.items()}
    addresses = {
        name: in_family(SERVER_ADDRESS, link.path.families[0]) for name, link in lab.links.items()
    }
    log = run_dir / ERRORS
    ends = []
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("wb"))

        def started(host: Host, task: EndTask, where: str) -> _End:
            argv = [sys.executable, "-I", "-S", "-B", str(PROGRAM), json.dumps(task)]
            process = host.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            stack.callback(_stop, process)
            one = _End(where, process, log)
            one.wait_until_ready()
            return one

        for number, pair in enumerate(tasks(scenario, seed, addresses, devices)):
            where = f"traffic[{number}]"
            hosts = (lab.server, lab.hosts[OTHER])
            one, two = (started(host, task, where) for host, task in zip(hosts, pair, strict=True))
            ends.append((one, two))
        yield Traffic(scenario.traffic, ends)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
