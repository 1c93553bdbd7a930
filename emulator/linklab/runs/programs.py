"""The user's own programs: where they lie, and what they get of his environment.

One rule for clients, servers and shells, in the guest and on the host: the user's PATH, and at its
end the directory of multilink. A program is looked for once, before the lab is there, because in
virtual time every directory that is searched in vain takes some of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from linklab.core.paths import MULTILINK
from linklab.lab.network.services import OwnServer

_KEPT: Final = ("LANG", "LC_ALL", "TERM", "VIRTUAL_ENV")
"""What the user's programs get of his environment besides PATH. The rest may hold tokens, and
run.json keeps what they get."""

_LONGEST_FIRST_LINE: Final = 256
"""Of a script: linux/binfmts.h, BINPRM_BUF_SIZE."""


class ProgramError(RuntimeError):
    """A program of the user's cannot be started; the message says where it was looked for."""


def search_path() -> list[str]:
    """The directories that are searched for programs, as they are from everywhere."""
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return list(dict.fromkeys(str(Path(one).absolute()) for one in [*given, str(MULTILINK.parent)]))


def environment() -> dict[str, str]:
    """What the user's programs get of his environment."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {"PATH": os.pathsep.join(search_path()), **kept}


def located(command: Sequence[str]) -> tuple[str, ...]:
    """The command with its program as an absolute path. ProgramError."""
    program, *words = command
    return (_located(program), *words)


def server_located(server: OwnServer | None) -> OwnServer | None:
    """The same of a server's command, if there is one. ProgramError."""
    if server is None:
        return None
    return msgspec.structs.replace(server, command=located(server.command))


def interpreter(program: Path) -> str | None:
    """The program that a script names in its first line; None for what is no script."""
    try:
        with program.open("rb") as file:
            first = file.readline(_LONGEST_FIRST_LINE)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = os.fsdecode(first[2:]).split()
    return words[0] if words else None


def _located(program: str) -> str:
    if "{" in program:  # To be filled in, in the lab.
        return program
    if "/" not in program:
        path = search_path()
        found = shutil.which(program, path=os.pathsep.join(path))
        if found is None:
            raise ProgramError(f"{program}: no such program; looked in {', '.join(path)}")
    else:
        found = str(Path(program).absolute())
        if not Path(found).exists():
            raise ProgramError(f"{found}: no such program")
        if Path(found).is_dir() or not os.access(found, os.X_OK):
            raise ProgramError(f"{found} is no program that can be executed")
    by = interpreter(Path(found))
    if by is not None and by.startswith("/") and not Path(by).exists():
        raise ProgramError(f"{found}: no such program as {by}, which its first line names")
    return found
