"""Runs one of set-up's programs and shows how far it is. Ends as the program does.

Of pip it counts the fetched and the installed packages, of `go build -v` the modules and the
compiled packages. Other lines are printed. Needs nothing but Python.
usage: watched.py Python SITE-PACKAGES REQUIREMENTS COMMAND...
       watched.py Go COMMAND... (the last word is the package to build)
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from linklab.display.parts import Parts, Progress

_UNITS = {"kB": 1e-3, "MB": 1.0, "GB": 1e3, "bytes": 1e-6}
_SILENT = (" ", "Ignoring ", "Looking in ", "Requirement already ", "Successfully ")
_LOOK_S = 0.5


class Pip:
    """Reads pip's lines."""

    def __init__(self, site: Path, total: int, show: Progress) -> None:
        self._site, self._total, self._show = site, total, show
        self._packages, self._mb = 0, 0.0
        self._before = self._installed()

    def _installed(self) -> int:
        return sum(1 for _ in self._site.glob("*.dist-info"))

    def take(self, line: str) -> bool:
        """Tells whether a line is about progress, and shows it."""
        if line.startswith("Collecting "):
            self._packages += 1
        elif size := re.search(r"^ +(?:Downloading|Using cached) .*\(([\d.]+) (\w+)\)", line):
            self._mb += float(size[1]) * _UNITS.get(size[2], 0)
        elif line.startswith("Installing collected packages"):
            threading.Thread(target=self._count, daemon=True).start()
            return True
        else:
            return line.startswith(_SILENT)
        self._show(
            f"fetching package {self._packages} of {self._total}, {self._mb:.0f} MB",
            0.6 * min(1.0, self._packages / self._total),
        )
        return True

    def _count(self) -> None:
        while True:
            there = self._installed() - self._before
            what = f"installing, {there} of {self._packages} packages"
            self._show(what, 0.6 + 0.39 * min(1.0, there / max(1, self._packages)))
            time.sleep(_LOOK_S)


class Go:
    """Reads the lines of `go build -v`."""

    def __init__(self, command: list[str], show: Progress) -> None:
        self._show = show
        self._fetched = self._compiled = 0
        show("looking for modules", 0.3)
        listed = run([command[0], "list", "-deps", command[-1]], self._fetches)
        self._total = max(1, len(listed))

    def _fetches(self, line: str) -> bool:
        if line.startswith("go: downloading "):
            self._fetched += 1
            self._show(f"fetching module {self._fetched}", 0.35)
        return line.startswith("go: downloading ")

    def take(self, line: str) -> bool:
        """Tells whether a line is about progress, and shows it."""
        if self._fetches(line):
            return True
        if not re.fullmatch(r"[\w./~-]+", line):
            return False
        self._compiled += 1
        done = min(1.0, self._compiled / self._total)
        self._show(f"compiling, {self._compiled} of {self._total} packages", 0.4 + 0.59 * done)
        return True


def run(command: list[str], take: Callable[[str], bool]) -> list[str]:
    """Runs a command, and returns the lines that `take` does not take. Exits if the command fails."""
    rest = []
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        close_fds=False,
        text=True,
        errors="replace",
    )
    for line in process.stdout or ():
        if not take(line.rstrip("\n")):
            rest.append(line)
    if process.wait() != 0:
        sys.stderr.writelines(rest)
        sys.exit(max(1, process.returncode))
    return rest


def main(name: str, words: list[str]) -> None:
    """Runs the command and prints its other lines."""
    with Parts() as parts:
        show = parts.part(name)
        if name == "Python":
            site, requirements, *command = words
            total = Path(requirements).read_text().count("==")
            rest = run(command, Pip(Path(site), max(1, total), show).take)
        else:
            command = words
            rest = run(command, Go(command, show).take)
        show("finished", 1)
    sys.stderr.writelines(rest)


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except KeyboardInterrupt:
        sys.exit(130)
