"""Runs `linklab live` as a process of its own, which ends with this one."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Final

from linklab.api.errors import LiveLabError
from linklab.core.paths import PYTHON_PATH

_END_S: Final = 30.0
_POLL_S: Final = 0.05


class LabProcess:
    """A started lab. Use it through `lab_process`."""

    def __init__(self, words: Sequence[str], said: IO[bytes]) -> None:
        self._said = said
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "linklab", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, "PYTHONPATH": _python_path()},
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the lab.
        )

    def why_ended(self) -> str | None:
        """Returns the last words of a lab that has ended, None as long as it runs."""
        return None if self._process.poll() is None else self._last_line()

    def wait(
        self, is_ready: Callable[[], bool], timeout_s: float, go_on: Callable[[], None]
    ) -> None:
        """Waits until the lab is ready. Raises LiveLabError if it ends or the time is over.

        `go_on` is called all the time. What it raises ends the wait.
        """
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            go_on()
            why = self.why_ended()
            if why is not None:
                raise LiveLabError(f"the lab did not start: {why}")
            if time.monotonic() > deadline:
                raise LiveLabError(
                    f"the lab did not start within {timeout_s:.0f} s: {self._last_line()}"
                )
            time.sleep(_POLL_S)

    def end(self) -> None:
        """Ends the lab, and waits for its end."""
        if self._process.poll() is None:
            self._process.terminate()  # A script's background programs ignore SIGINT.
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_line(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("linklab: ") if lines else "it said nothing"


@contextlib.contextmanager
def lab_process(words: Sequence[str]) -> Iterator[LabProcess]:
    """Runs a command of linklab during the block. It also ends with this process, however that
    ends, and with the thread that started it."""
    with tempfile.TemporaryFile() as said:
        process = LabProcess(words, said)
        atexit.register(process.end)  # The block may be a generator's that nobody closes.
        try:
            yield process
        finally:
            process.end()
            atexit.unregister(process.end)


def _python_path() -> str:
    """Returns PYTHONPATH with this linklab first."""
    return os.pathsep.join(filter(None, [str(PYTHON_PATH), os.environ.get("PYTHONPATH")]))
