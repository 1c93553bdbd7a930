"""Keeps the processes in which a worker makes its runs (work.py), so that an emulated machine is
booted once for many runs.

A worker makes a run in each of its threads. So there are as many processes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from typing import Final

from linklab.campaign import wire_format
from linklab.core.paths import PYTHON_PATH

IDLE_S: Final = 5.0
"""The time after which a process without a run ends. A worker gets its next run much earlier."""

_MODULE: Final = "linklab.campaign.work"

_LAST_WORDS_BYTES: Final = 4096


class RunProcess:
    """A process that makes one run after the other. It ends with its worker."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as stack:
            self._said = stack.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**os.environ, "PYTHONPATH": str(PYTHON_PATH)},
            )
            stack.callback(self._process.communicate)
            self._resources = stack.pop_all()

    def is_alive(self) -> bool:
        """Tells whether it can make a run."""
        return self._process.poll() is None

    def perform(self, parcel: bytes) -> bytes | None:
        """Runs an encoded Parcel, and returns the encoded Reply.

        Returns None if it has ended because linklab was changed. Raises RuntimeError if it dies.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            wire_format.send(self._process.stdin, parcel)
            reply = wire_format.receive(self._process.stdout)
        except OSError:
            reply = None
        if reply is not None:
            return reply
        code = self._process.wait()
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        said = self._said.read().decode(errors="replace").strip().splitlines()[-3:]
        self.close()
        if code != 0:
            raise RuntimeError(f"the run's process ended with {code}: {' '.join(said)}")
        return None

    def close(self) -> None:
        """Ends it after its run, with its emulated machine."""
        self._resources.close()


_idle: dict[RunProcess, threading.Timer] = {}
_lock = threading.Lock()


def perform(parcel: bytes) -> bytes:
    """Runs an encoded Parcel in a kept process, or in a new one. Returns the encoded Reply.

    Raises RuntimeError if the process dies.
    """
    process = _take() or RunProcess()
    while (reply := process.perform(parcel)) is None:
        process = RunProcess()
    timer = threading.Timer(IDLE_S, _drop, [process])
    timer.daemon = True
    with _lock:
        _idle[process] = timer
    timer.start()
    return reply


def _take() -> RunProcess | None:
    """Returns a kept process that is alive, or None."""
    with _lock:
        while _idle:
            process, timer = _idle.popitem()
            timer.cancel()
            if process.is_alive():
                return process
            process.close()
    return None


def _drop(process: RunProcess) -> None:
    """Ends a kept process, unless it was taken meanwhile."""
    with _lock:
        is_idle = _idle.pop(process, None) is not None
    if is_idle:
        process.close()
