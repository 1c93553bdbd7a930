"""Users' homes: a guest sees nothing of them but what its run needs (confinement.py).

Where programs keep tokens in a home no list can follow. So it is the other way round: hidden is all,
and shown is what is named.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SYSTEM: Final = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr")
"""Where system accounts have what is called their home, and programs lie."""

_FIRST_USER: Final = 1000  # login.defs(5): UID_MIN
_NOBODY: Final = 65534

_MOST_LINKS: Final = 40
"""path_resolution(7)."""

_PATH: Final = re.compile(r"(?<![\w.~/])(?!//)/[^\s\"'`;|&<>(){}\[\]$*?,:=\\]+")
"""A path in what people or programs write."""

_MOST_SAID: Final = 3


@dataclass(frozen=True)
class Homes:
    """All users' homes, and the `trees` that are hidden because of them, as the kernel calls them."""

    homes: frozenset[Path]
    trees: frozenset[Path]

    def hold(self, path: Path) -> bool:
        """Whether a path lies in what is hidden."""
        real = Path(os.path.realpath(path))
        return not self.trees.isdisjoint((real, *real.parents))

    def is_broad(self, path: Path) -> bool:
        """Whether it is a directory that is a home or above one, or where programs keep their settings there:
        too much to be shown because something in it is needed."""
        real = Path(os.path.realpath(path))
        if any(real == home or real in home.parents for home in self.homes):
            return True
        if not real.is_dir():
            return False
        if real.parent in self.homes:
            return real.name.startswith(".") or real.name == "snap"
        is_local = real.parent.name == ".local" and real.parent.parent in self.homes
        return is_local and real.name not in ("bin", "lib")

    def missed(self, text: str, shown: Collection[Path]) -> Iterator[str]:
        """What is to be said of the paths in a text that a guest does not see, though they are there:
        they are hidden, and not of what is `shown`."""
        allowed = {Path(os.path.realpath(path)) for path in shown}
        said = 0
        for name in dict.fromkeys(found.rstrip(".") for found in _PATH.findall(text)):
            real = Path(os.path.realpath(name))
            is_shown = not allowed.isdisjoint((real, *real.parents))
            if self.hold(real) and not is_shown and os.access(name, os.F_OK):
                said += 1
                yield f"{name} is hidden in the guest; --share {name} shows it"
            if said == _MOST_SAID:
                return


def found() -> Homes:
    """Those of this machine."""
    named = {Path("/root"), *Path("/").glob("home/*")}
    with contextlib.suppress(RuntimeError):
        named.add(Path.home())
    for one in pwd.getpwall():
        if one.pw_uid == os.getuid() or _FIRST_USER <= one.pw_uid < _NOBODY:
            named.add(Path(one.pw_dir))
    real = {Path(os.path.realpath(path)) for path in named if path.is_absolute()}
    homes = {path for path in real if path.parts[1:2] and path.parts[1] not in _SYSTEM}
    more = {Path(os.path.realpath(path)) for path in ("/home", "/run/user")}
    if os.environ.get("HOME") == "/":  # As containers have it: the machine's files lie there, too.
        more |= set(Path("/").glob(".*"))
    trees = {path for path in homes | more if os.access(path, os.F_OK)}
    return Homes(frozenset(homes), frozenset(trees))


def steps(path: Path) -> tuple[dict[Path, str], Path]:
    """The symbolic links on the way to a path, each as the kernel calls it, with what it holds; and
    where they lead."""
    links: dict[Path, str] = {}
    real = Path("/")
    waiting = [*reversed(path.absolute().parts[1:])]
    followed = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            real = real.parent
            continue
        real /= part
        try:
            target = str(real.readlink())
        except OSError:
            continue
        followed += 1
        if followed > _MOST_LINKS:
            break
        links[real] = target
        real = Path("/") if target.startswith("/") else real.parent
        waiting += reversed([one for one in target.split("/") if one not in ("", ".")])
    return links, real
