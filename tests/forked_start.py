"""Calls `linklab` in forks of a process that has imported it. Python and the imports take 0.35 s of
processor time at each start otherwise, and the tests call `linklab` a thousand times.

A fork has the caller's directory and environment, and standard files of its own. It begins where
`python -m linklab` does. A caller whose environment is not the one of the tests' start, such as
another cache, starts a program of its own.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 1 << 20
_CHANGES_WITH_EACH_TEST: Final = "PYTEST_CURRENT_TEST"
_LEFT_OUT: Final = ("conftest", "calibrate")
"""`calibrate` imports numpy, which starts threads. Few tests call it."""


class Forks:
    """A process with linklab's modules, from which commands are forked. It ends with its maker."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = _lasting(environment)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=dict(environment),
                pass_fds=[theirs.fileno()],
            )

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Tells whether a command with this environment may be forked."""
        return _lasting(environment) == self._environment

    def run(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `linklab` with these arguments as `subprocess.run` does with captured output. Raises
        TimeoutExpired after having killed it."""
        request = json.dumps([list(arguments), str(directory), dict(environment)]).encode()
        with contextlib.ExitStack() as stack:
            out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            reading, writing = os.pipe()
            ended = stack.enter_context(os.fdopen(reading, "rb"))
            with os.fdopen(writing, "wb") as theirs:
                files = array.array("i", [0, out.fileno(), err.fileno(), theirs.fileno()])
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, files)
                self._channel.sendmsg([request], [rights])
            process = int(ended.readline())
            if not select.select([ended], [], [], timeout_s)[0]:
                os.kill(process, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout_s)
            code = os.waitstatus_to_exitcode(int(ended.readline()))
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess(list(arguments), code, *said)


def _lasting(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: one for key, one in environment.items() if key != _CHANGES_WITH_EACH_TEST}


def _serve(channel: socket.socket) -> None:
    """Forks a command for each request until the other end is closed. A process between waits for the
    command and writes its number and its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, files, _, _ = socket.recv_fds(channel, _MOST_BYTES, 4)
        if not request:
            return
        if os.fork() == 0:
            channel.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            command = os.fork()
            if command == 0:
                os.close(files.pop())
                _become(files, *json.loads(request))
                return
            os.write(files[3], b"%d\n" % command)
            for file in files[:3]:
                os.close(file)
            _, status = os.waitpid(command, 0)
            os.write(files[3], b"%d\n" % status)
            os._exit(0)
        for file in files:
            os.close(file)


def _become(
    files: Sequence[int], arguments: Sequence[str], directory: str, environment: dict[str, str]
) -> None:
    """Makes this process the program `linklab`."""
    from linklab import __main__ as start  # It sets a handler of signals.

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = directory
    sys.argv = [start.__file__, *arguments]
    start.program()


def _ask_once() -> None:
    """Asks what a process asks once, by starting other programs: versions, and what it may do here."""
    root = image.cached("guest")
    if root is not None:
        versions.versions("guest")
        confinement.fence()
        bundle.ensure(root, runner._SESSION)


if __name__ == "__main__":
    from linklab.commands import cli
    from linklab.places import versions
    from linklab.places.guest import bundle, confinement, image
    from linklab.runs import runner

    for file in Path(cli.__file__).parent.glob("*.py"):
        if not file.stem.endswith("test") and file.stem not in _LEFT_OUT:
            importlib.import_module(f"linklab.commands.{file.stem}")
    _ask_once()
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
