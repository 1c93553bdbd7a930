"""Runs `shell`: the user's program on the user's terminal, in a lab on the real clock.

`linklab link` in another terminal changes the lab's links.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path
from typing import Any

from linklab.core.error_report import report_error
from linklab.lab.player import control
from linklab.lab.player.control import Command
from linklab.places.choice import Environment
from linklab.realtime import user_terminal
from linklab.realtime.command_server import serving
from linklab.realtime.exporter import Exporter
from linklab.realtime.link_command import feasible, in_words
from linklab.runs import job, outcome, runner
from linklab.runs.runner import RunRequest


class ShellLab:
    """Answers the HTTP requests to a shell's lab."""

    def __init__(self, request: RunRequest, where: Environment) -> None:
        self.exporter = Exporter()
        self._request = request
        self._where = where
        self._run_dir: Path | None = None

    def begin(self, run_dir: Path) -> None:
        """Sets the run that later requests are about."""
        runner.prepare(self._request, run_dir, self._where, live=True)
        self.exporter.begin(run_dir, job.read(run_dir), self._request.scenario)
        self._run_dir = run_dir

    def status(self) -> dict[str, Any]:
        """Returns the lab's status, for people and programs."""
        return {
            "scenario": self._request.scenario.name,
            "running": self._request.client_name,
            "run_dir": self._run_dir and str(self._run_dir),
            "seed": self._request.seed,
            "proxies": {},
            "origins": [],
            "now": self.exporter.now(),
            "place": self._where.name,
            "clock": self._where.clock,
            "lateness_s": self.exporter.lateness_s,
        }

    def obey(self, command: Command) -> str:
        """Changes the lab now. Raises ValueError if the scenario's links cannot do it."""
        if command.next or command.pause is not None:
            raise ValueError("a shell has no downloads of its own: that is for linklab live")
        command = feasible(self._request.scenario, command)
        if self._run_dir is None:
            raise ValueError("the lab is not there yet")
        number = control.send(self._run_dir, command)
        return in_words(command, is_executed=control.wait_until_executed(self._run_dir, number))


def run(request: RunRequest, where: Environment, parent: Path, address: tuple[str, int]) -> int:
    """Runs the request's command on the user's terminal to its end, and returns its exit code.

    The code is 128 plus the signal's number if a signal ended the command. Raises TerminalError,
    TokenError, RunError, and OSError if the address is in use.
    """
    lab = ShellLab(request, where)
    with serving(address, lab.exporter, lab.status, lab.obey) as (server, _, _):
        run_dir = runner.new_directory(parent, request.label)
        lab.begin(run_dir)
        first = next(iter(request.scenario.links))
        print(
            f"change it from another terminal: linklab link {first} carrier down --live "
            f"{server.address[0]}:{server.address[1]}; metrics: {server.url}/metrics",
            file=sys.stderr,
        )
        error = _attended(request, where, run_dir)
    print(f"run directory: {run_dir}", file=sys.stderr)
    if error is not None:
        report_error(error)
        return 1
    code = outcome.read(run_dir).exit_code
    return code if code >= 0 else 128 - code


def _attended(request: RunRequest, where: Environment, run_dir: Path) -> str | None:
    """Runs the command, and returns why the lab failed, or None."""
    own, far = socket.socketpair()
    with own:
        with far:
            running = runner.begin(request, run_dir, where, float("inf"), far.fileno())
        with contextlib.closing(running):
            user_terminal.attend(own, running)
            return runner.verdict(running)
