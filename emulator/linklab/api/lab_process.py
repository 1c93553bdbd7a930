"""Runs `linklab live` as a process of its own, which ends with this one."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Final, TypeVar

from linklab.api.errors import LiveLabError, UsageError
from linklab.core.paths import PYTHON_PATH
from linklab.realtime.token import ENVIRONMENT

T = TypeVar("T")

_END_S: Final = 30.0
_SOON_S: Final = 1.0
"""The time to end for a lab that has not told its addresses. It has started nothing yet, but may wait
for a name server, which no signal interrupts."""
_POLL_S: Final = 0.05
_MOST_BYTES: Final = 65_536


class LabProcess:
    """A started lab. Use it through `lab_process`.

    Attributes:
        token: the lab's token. No other lab or server has it.
    """

    def __init__(self, words: Sequence[str], said: IO[bytes], addresses: tuple[int, int]) -> None:
        self._said = said
        self._addresses, told = addresses
        self._told = b""
        self._refusal: str | None = None
        self.token = secrets.token_urlsafe(24)
        command = [sys.executable, "-m", "linklab", "live", "--addresses-fd", str(told), *words]
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, "PYTHONPATH": _python_path(), ENVIRONMENT: self.token},
            pass_fds=[told],
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the lab.
        )

    def why_ended(self) -> str | None:
        """Returns the last words of a lab that has ended, None as long as it runs."""
        return None if self._process.poll() is None else self._last_line()

    def addresses(self) -> dict[str, Any] | None:
        """Returns what the lab says of its addresses, None as long as it says nothing."""
        with contextlib.suppress(BlockingIOError):
            self._told += os.read(self._addresses, _MOST_BYTES)
        if not self._told.endswith(b"\n"):
            return None
        said: dict[str, Any] = json.loads(self._told)
        self._refusal = said.get("refused")
        return said if self._refusal is None else None

    def wait(self, ready: Callable[[], T | None], timeout_s: float) -> T:
        """Waits until the lab is ready, and returns what `ready` does then. Raises LiveLabError if
        it ends or the time is over, UsageError if there can be no such lab."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = ready()
            why = self.why_ended()  # After the look: others may answer in place of an ended lab.
            if why is not None:
                self.addresses()
                if self._refusal is not None:
                    raise UsageError(self._refusal)
                raise LiveLabError(f"the lab did not start: {why}")
            if found is not None:
                return found
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
            self._process.wait(_END_S if self._told else _SOON_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_line(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("linklab: ") if lines else "it said nothing"


@contextlib.contextmanager
def lab_process(words: Sequence[str]) -> Iterator[LabProcess]:
    """Runs `linklab live` with these words during the block. It also ends with this process, however that
    ends, and with the thread that started it."""
    with contextlib.ExitStack() as stack:
        said = stack.enter_context(tempfile.TemporaryFile())
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, reader)
        try:
            process = LabProcess(words, said, (reader, writer))
        finally:
            os.close(writer)
        atexit.register(process.end)  # The block may be a generator's that nobody closes.
        try:
            yield process
        finally:
            process.end()
            atexit.unregister(process.end)


def _python_path() -> str:
    """Returns PYTHONPATH with this linklab first."""
    return os.pathsep.join(filter(None, [str(PYTHON_PATH), os.environ.get("PYTHONPATH")]))
