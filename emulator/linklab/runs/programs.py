"""Finds the user's own programs, and selects what they get of the user's environment.

The rule is the same for clients, servers and shells, in the guest and on the host: the user's PATH,
then the directory of multilink. A program is located once, before the lab exists. In virtual time,
every failed search of a directory would take time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from linklab.core import elf
from linklab.core.errors import LinklabError
from linklab.core.paths import MULTILINK
from linklab.lab.network.services import OwnServer

_KEPT: Final = ("LANG", "LC_ALL", "TERM", "VIRTUAL_ENV")
"""The variables besides PATH that the user's programs get. Others may hold tokens, and run.json
keeps what programs get."""

_LONGEST_FIRST_LINE: Final = 256
"""The longest first line of a script: linux/binfmts.h, BINPRM_BUF_SIZE."""


class ProgramError(LinklabError, RuntimeError):
    """A user's program cannot be started. The message says where it was looked for."""


def search_path() -> list[str]:
    """Returns the directories in which programs are searched, as absolute paths."""
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return list(dict.fromkeys(str(Path(one).absolute()) for one in [*given, str(MULTILINK.parent)]))


def environment() -> dict[str, str]:
    """Returns the environment of the user's programs."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {"PATH": os.pathsep.join(search_path()), **kept}


def located(command: Sequence[str]) -> tuple[str, ...]:
    """Returns the command with its program as an absolute path. Raises ProgramError."""
    program, *words = command
    return (_located(program), *words)


def server_located(server: OwnServer | None) -> OwnServer | None:
    """Returns the server with its program as an absolute path, if there is one. Raises
    ProgramError."""
    if server is None:
        return None
    return msgspec.structs.replace(server, command=located(server.command))


def interpreter(program: Path) -> str | None:
    """Returns the interpreter that a script's first line names, None if the file is no script."""
    try:
        with program.open("rb") as file:
            first = file.readline(_LONGEST_FIRST_LINE)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = os.fsdecode(first[2:]).split()
    return words[0] if words else None


def require_x86_64(command: Sequence[str]) -> None:
    """Raises ProgramError if the guest's processor cannot execute a located command."""
    program = Path(command[0])
    for one in (program, interpreter(program)):
        made_for = None if one is None else elf.processor(Path(one))
        if made_for not in (None, elf.X86_64):
            raise ProgramError(
                f"{one} is a program for {made_for}, and the guest's processor is {elf.X86_64}: "
                "compile it for that (Go: GOARCH=amd64, Rust: --target "
                "x86_64-unknown-linux-musl, C: x86_64-linux-gnu-gcc -static), or use --place host"
            )


def _located(program: str) -> str:
    if "{" in program:  # A placeholder, filled in in the lab.
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
