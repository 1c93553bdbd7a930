"""Runs make for the parts of set-up, and shows how far each is (linklab/display/parts.py).

Lines that the parts print appear above. Ends as make does. Needs nothing but Python.
usage: side_by_side.py MAKE ARGUMENT...
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from linklab.display.parts import PROGRESS_FD, Parts


def take_progress(pipe: IO[str], parts: Parts) -> None:
    """Shows what the parts write to the pipe until all of them have ended."""
    for line in pipe:
        name, fraction, what = line.rstrip("\n").split("\t", 2)
        parts.report(name, what, float(fraction))


def main(command: list[str]) -> int:
    """Runs the command and returns its exit code."""
    if PROGRESS_FD in os.environ:  # A set-up within a set-up shows nothing of its own.
        return subprocess.run(command, check=False).returncode
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with Parts() as parts, os.fdopen(reading, encoding="utf-8", errors="replace") as progress:
        make = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            close_fds=False,  # make's jobserver passes descriptors, too.
            env={**os.environ, PROGRESS_FD: str(writing)},
            text=True,
            errors="replace",
        )
        os.close(writing)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: make.send_signal(number))
        taking = threading.Thread(target=take_progress, args=(progress, parts))
        taking.start()
        while True:
            try:
                for line in make.stdout or ():
                    parts.say(line.rstrip("\n"))
                taking.join()
                return make.wait()
            except KeyboardInterrupt:
                pass  # The terminal has told make and the parts, too. They say what they removed.


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
