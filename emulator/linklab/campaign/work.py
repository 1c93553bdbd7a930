"""Runs parcels on a worker, in a process of their own, which `run_process.py` starts.

The process reads parcels from standard input and writes replies to standard output. It ends when its
worker dies in any way. Then it removes its scratch directory and ends its guest, so nothing is left.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import msgspec

from linklab.campaign import machine, wire_format
from linklab.campaign.wire_format import Parcel, Reply
from linklab.core.scratch import scratch_prefix
from linklab.places import choice
from linklab.places.emulated.machine import kept
from linklab.places.guest import kernel
from linklab.runs import runner, summary
from linklab.runs.clients import obstacle
from linklab.runs.run_figures import FigureError


def _run(parcel: Parcel, facts: dict[str, str]) -> Reply:
    begun = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix=scratch_prefix("run")))
    try:
        run_dir = scratch / "run"
        run_dir.mkdir()
        failure, again = _failure(parcel, facts, scratch, run_dir)
        return Reply(
            failure=failure.replace(f"{run_dir}/", "") if failure else None,
            again=again,
            wall_s=time.monotonic() - begun,
            files=wire_format.pack(run_dir),
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _failure(
    parcel: Parcel, facts: dict[str, str], scratch: Path, run_dir: Path
) -> tuple[str | None, bool]:
    """Returns why there are no figures (None if there are), and whether another try may succeed."""
    different = machine.differences(parcel.machine, facts)
    if different:
        return f"the worker has changed: {', '.join(different)}", True
    missing = obstacle([parcel.client] if parcel.client else [])
    if missing is not None:
        return missing, True
    try:
        kernel.ensure()
        given = scratch / "given"
        given.mkdir()
        request = wire_format.unwrap(parcel, given)
        where = choice.choose("guest", "virtual")
        limit = runner.watchdog_s(request, where, parcel.timeout_s)
        limit_s = runner.limit_s(request, parcel.timeout_s)
        runner.prepare(request, run_dir, where, limit_s=limit_s)
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
    """Runs parcels from standard input, and writes a reply to each. Returns 130 if terminated.

    It ends without a reply if this machine's linklab was changed. The next process has the changed
    code.
    """
    signal.signal(signal.SIGTERM, _terminate)
    # A terminal sends Ctrl-C to every process. The submitting process ends the worker, and the
    # worker ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started = machine.facts()
        with kept():
            while (encoded := wire_format.receive(sys.stdin.buffer)) is not None:
                if machine.facts() != started:
                    break
                parcel = msgspec.msgpack.decode(encoded, type=Parcel)
                reply = msgspec.msgpack.encode(_run(parcel, started))
                wire_format.send(sys.stdout.buffer, reply)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
