"""Lists the host's programs that runs call, and the oldest versions that work.

The guest's own programs are in its image. What only set-up calls is in the handbook
(`reference/systems.md`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final, Literal

Use = Literal["every run", "host place", "outside"]


@dataclass(frozen=True)
class HostProgram:
    """A program of the host.

    Attributes:
        package: Debian's name of its package.
        use: what calls it.
        least: the oldest version with the options that linklab uses.
        options: these options, or what else decides.
        version: the word that lets it say its version.
    """

    name: str
    package: str
    use: Use
    least: str
    options: str
    version: str = "--version"


PROGRAMS: Final = (
    HostProgram("setpriv", "util-linux", "every run", "2.33", "`--pdeathsig`"),
    HostProgram("taskset", "util-linux", "every run", "2.33", "as `setpriv`"),
    HostProgram("unshare", "util-linux", "host place", "2.33", "`--mount=FILE`, `--propagation`"),
    HostProgram("nsenter", "util-linux", "host place", "2.38", "`--wdns`"),
    HostProgram("mnexec", "mininet", "host place", "2.3", "mount namespaces", "-v"),
    HostProgram("h2o", "h2o", "host place", "2.2", "`server/h2o.conf`"),
    HostProgram("slirp4netns", "slirp4netns", "outside", "1.2", "`--target-type=bess`"),
)


def version_of(said: str) -> tuple[int, ...]:
    """Returns the first version in a text, () without one. Pure."""
    found = re.search(r"\d+(?:\.\d+)+", said)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def obstacle(program: HostProgram) -> str | None:
    """Returns why a program will not do: `missing`, or its old version; None if it will do."""
    path = shutil.which(program.name)
    if path is None:
        return "missing"
    done = subprocess.run(
        [path, program.version],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    version = version_of(done.stdout + done.stderr)
    if not version or version >= version_of(program.least):
        return None
    return f"version {'.'.join(map(str, version))}, but {program.least} is needed"


def missing(use: Use) -> str | None:
    """Returns which programs of one use are missing, None if none is. It starts no program: `h2o -v`
    asks the machine for its users, and a run has no time to lose."""
    names = [one.name for one in PROGRAMS if one.use == use and shutil.which(one.name) is None]
    return ", ".join(f"{name} (missing)" for name in names) or None
