"""Runs `shell`: the user's program on the user's terminal, in a lab on the real clock.

`linklab link` in another terminal changes the lab's links.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

from linklab.core.error_report import report_error
from linklab.lab.player.control import Command
from linklab.places.choice import Environment
from linklab.realtime import user_terminal
from linklab.realtime.command_server import serving
from linklab.realtime.one_lab import OneLab
from linklab.realtime.session import LiveLab
from linklab.runs import outcome, runner
from linklab.runs.runner import RunRequest


class ShellLab(LiveLab):
    """The lab of a shell, which ends with it."""

    def obey(self, command: Command) -> str:
        """Changes the lab now. Raises ValueError if the scenario's links cannot do it."""
        if command.next or command.pause is not None:
            raise ValueError("a shell has no downloads of its own: that is for linklab live")
        return super().obey(command)


def run(request: RunRequest, where: Environment, parent: Path, address: tuple[str, int]) -> int:
    """Runs the request's command on the user's terminal to its end, and returns its exit code.

    The code is 128 plus the signal's number if a signal ended the command. Raises TerminalError,
    TokenError, RunError, and OSError if the address is in use.
    """
    with (
        contextlib.closing(ShellLab([request], where)) as lab,
        serving(address, OneLab.of(lab)) as (server, _, _),
    ):
        run_dir = lab.begin(request, parent)
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
