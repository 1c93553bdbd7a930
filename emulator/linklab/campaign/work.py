"""Runs one parcel at a time on a worker, each in its own process.

The process reads a parcel from standard input and writes a reply to standard output. It ends when
its worker dies in any way. Then it removes its scratch directory and ends its guest, so nothing is
left.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import msgspec

from linklab.campaign import machine
from linklab.campaign.wire_format import Parcel, Reply, pack, unwrap
from linklab.core.paths import PYTHON_PATH
from linklab.core.scratch import scratch_prefix
from linklab.places import choice
from linklab.places.guest import kernel
from linklab.runs import runner, summary
from linklab.runs.clients import obstacle
from linklab.runs.run_figures import FigureError


def facts() -> dict[str, str]:
    """Returns `machine.facts` of this worker's machine."""
    return machine.facts()


def perform(parcel: bytes) -> bytes:
    """Runs an encoded Parcel, and returns the encoded Reply.

    Raises RuntimeError if the run's process died.
    """
    done = subprocess.run(
        ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "linklab.campaign.work"],
        input=parcel,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PYTHON_PATH)},
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise RuntimeError(f"the run's process ended with {done.returncode}: {' '.join(said)}")
    return done.stdout


def _run(parcel: Parcel, scratch: Path) -> Reply:
    begun = time.monotonic()
    run_dir = scratch / "run"
    run_dir.mkdir()
    failure, again = _failure(parcel, scratch, run_dir)
    return Reply(
        failure=failure.replace(f"{run_dir}/", "") if failure else None,
        again=again,
        wall_s=time.monotonic() - begun,
        files=pack(run_dir),
    )


def _failure(parcel: Parcel, scratch: Path, run_dir: Path) -> tuple[str | None, bool]:
    """Returns why there are no figures (None if there are), and whether another try may succeed."""
    different = machine.differences(parcel.machine, machine.facts())
    if different:
        return f"the worker has changed: {', '.join(different)}", True
    missing = obstacle([parcel.client] if parcel.client else [])
    if missing is not None:
        return missing, True
    try:
        kernel.ensure()
        given = scratch / "given"
        given.mkdir()
        request = unwrap(parcel, given)
        where = choice.choose("guest", "virtual")
        limit = parcel.timeout_s
        if limit is None:
            limit = runner.watchdog_s(request, where)
        runner.prepare(request, run_dir, where)
        with contextlib.closing(runner.begin(request, run_dir, where, limit)) as running:
            select.select([running], [], [], limit)
            broken = runner.verdict(running)
    except (OSError, RuntimeError, ValueError) as error:
        return str(error), True
    if broken is not None:
        return broken, True
    try:
        summary.write(run_dir)
    except FigureError as error:
        return str(error), False
    except OSError as error:
        return str(error), True
    return None, False


def _terminate(_: int, __: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Runs a parcel from standard input, and writes its reply. Returns 130 if it was terminated."""
    signal.signal(signal.SIGTERM, _terminate)
    # A terminal sends Ctrl-C to every process. The submitting process ends the worker, and the
    # worker ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = sys.stdout.buffer
    try:
        parcel = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Parcel)
        scratch = Path(tempfile.mkdtemp(prefix=scratch_prefix("run")))
        try:
            reply = _run(parcel, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        answer.write(msgspec.msgpack.encode(reply))
        answer.flush()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
