"""Finds the users' homes; a guest sees only the parts that its run needs (confinement.py).

No list can name all files in which programs keep tokens. So all of a home is hidden, except the
paths that the run names.
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
"""Directories of programs; the homes of system accounts lie in them."""

_OF_USERS: Final = (Path("/dev/shm"), Path("/usr/home"))
"""Directories in these whose contents are users' files."""

_FIRST_USER: Final = 1000  # login.defs(5): UID_MIN
_NOBODY: Final = 65534

_MOST_LINKS: Final = 40
"""path_resolution(7)."""

_PATH: Final = re.compile(r"(?<![\w.~/])(?!//)/[^\s\"'`;|&<>(){}\[\]$*?,:=\\]+")
"""A path in a text."""

_MOST_SAID: Final = 3


@dataclass(frozen=True)
class Homes:
    """All users' homes, and the directory `trees` hidden because of them. Paths are resolved."""

    homes: frozenset[Path]
    trees: frozenset[Path]

    def hold(self, path: Path) -> bool:
        """Tells whether a path lies in a hidden tree."""
        real = Path(os.path.realpath(path))
        return not self.trees.isdisjoint((real, *real.parents))

    def is_broad(self, path: Path) -> bool:
        """Tells whether a directory holds too much to be shown because of one needed file in it.

        That holds for homes, directories above a home, and directories of settings in a home.
        """
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
        """Yields notes about existing paths in a text that are hidden from the guest."""
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
    """Returns the homes of this machine."""
    named = {Path("/root"), *Path("/").glob("home/*")}
    with contextlib.suppress(RuntimeError):
        named.add(Path.home())
    for one in pwd.getpwall():
        if one.pw_uid == os.getuid() or _FIRST_USER <= one.pw_uid < _NOBODY:
            named.add(Path(one.pw_dir))
    real = {Path(os.path.realpath(path)) for path in named if path.is_absolute()}
    homes = {path for path in real if not _is_of_system(path)}
    more = {Path(os.path.realpath(path)) for path in ("/home", "/run/user")}
    if os.environ.get("HOME") == "/":  # In containers. The system's files lie there, too.
        more |= set(Path("/").glob(".*"))
    trees = {path for path in homes | more if os.access(path, os.F_OK)}
    return Homes(frozenset(homes), frozenset(trees))


def _is_of_system(path: Path) -> bool:
    if not path.parts[1:]:
        return True
    return path.parts[1] in _SYSTEM and not any(one in path.parents for one in _OF_USERS)


def steps(path: Path) -> tuple[dict[Path, str], Path]:
    """Returns the symbolic links on a path with their targets, and the resolved path."""
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
