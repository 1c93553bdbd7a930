"""What one connection gets of a link beside another program.

usage: beside.py DEVICE SECONDS [COMMAND…]

The command begins; two seconds later curl fetches the scenario's file over the device for so many
seconds, of which how many bytes came is printed. The command, which must still be at work then, is
ended, also where this program is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from shlex import split

HEAD_START_S = 2.0


@contextlib.contextmanager
def at_work(command: Sequence[str]) -> Iterator[None]:
    """Runs a command in a directory of its own during the block."""
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(command, cwd=directory, stdout=sys.stderr)
        try:
            yield
            if process.poll() is not None:
                sys.exit(f"{command[0]} ended too early")
        finally:
            process.terminate()
            process.wait()


signal.signal(signal.SIGTERM, signal.default_int_handler)
device, seconds, other = sys.argv[1], sys.argv[2], sys.argv[3:]
with at_work(other) if other else contextlib.nullcontext():
    time.sleep(HEAD_START_S)
    curl = subprocess.run(
        [
            *split("curl -s --interface"),
            device,
            "--cacert",
            os.environ["LINKLAB_CA"],
            "--max-time",
            seconds,
            "-o",
            os.devnull,
            "-w",
            "%{size_download}",
            os.environ["LINKLAB_URL"],
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
print(curl.stdout)
