"""Selects the paths in users' homes that the guest shows to the user's programs.

These are the current directory, the programs with their libraries, the directories of PATH, the
paths that the command names, and those of `--share`. A command in a file may be a stranger's. Then
the paths that it names are not shown, but what lies beside that file. A whole home, or a directory
of settings, is shown only by `--share`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.errors import LinklabError
from linklab.places.guest import homes
from linklab.places.guest.homes import Homes
from linklab.runs import programs

_PROGRAMS: Final = ("bin", "sbin", "shims")
"""Names of directories of programs whose libraries lie beside them."""

_LIBRARIES: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""What a venv or toolchain has beside its programs."""

_PARTS: Final = (
    *(*_LIBRARIES, "bin", "include"),
    *("installs", "plugins", "toolchains", "version", "versions"),
)
"""What is shown beside programs if the directory also holds settings."""


class ShareError(LinklabError, RuntimeError):
    """A path to be shown does not exist."""


@dataclass(frozen=True)
class VisiblePaths:
    """Holds the shown paths, and notes on those that are not shown."""

    paths: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def select(
    commands: Sequence[Sequence[str]], share: Sequence[str], beside: str | None = None
) -> VisiblePaths:
    """Returns what a run with these user's commands is shown, nothing without commands. If the
    commands stand in a file, `beside` is its directory."""
    if not commands:
        return VisiblePaths()
    all_homes = homes.found()
    found = [Path(one) for one in share]
    if beside is not None and not all_homes.is_broad(Path(beside)):
        found.append(Path(beside))
    notes = []
    here = Path.cwd()
    if not all_homes.is_broad(here):
        found.append(here)
    elif all_homes.hold(here) and here not in found:
        notes.append(
            f"{here}, where you stand, is hidden in the guest but for what the command names; "
            "--share DIR shows a directory"
        )
    for directory in programs.search_path():
        found += _of_search_directory(Path(directory), all_homes)
    for program, *words in commands:
        found += _of_program(Path(program), all_homes, is_own=beside is None)
        if beside is not None:
            words = []
        for path in (path for word in words for path in _named(word)):
            if not all_homes.is_broad(path):
                found.append(path)
            if _is_program(path):  # As in `env NAME=value python`.
                found += _of_program(path, all_homes, is_own=False)
    text = " ".join(word for _, *words in commands for word in words)
    return VisiblePaths(tuple(dict.fromkeys(found)), (*notes, *all_homes.missed(text, found)))


def require(share: str) -> None:
    """Raises ShareError if the path does not exist."""
    if not os.access(share, os.F_OK):
        raise ShareError(f"--share {share}: no such file or directory")


def _named(word: str) -> Iterator[Path]:
    """Yields the existing paths that a word of a command may name: `x`, `--option=x`, `@x`."""
    for text in (word, word.partition("=")[2], word.removeprefix("@")):
        if text and os.access(text, os.F_OK):
            yield Path(text).absolute()


def _of_search_directory(directory: Path, all_homes: Homes) -> Iterator[Path]:
    """Yields the directory, and the programs in homes that links in it point to."""
    try:
        with os.scandir(directory) as entries:
            links = [Path(one.path) for one in entries if one.is_symlink()]
    except OSError:
        return
    if all_homes.hold(directory):
        yield from _around(directory / "program", all_homes)
    for link in links:
        if all_homes.hold(link):
            yield from _of_program(link, all_homes)


def _of_program(program: Path, all_homes: Homes, *, is_own: bool = True) -> Iterator[Path]:
    """Yields what a program in a home belongs to, its link targets and its interpreter.

    A stranger's file may name any path as a program, and a stranger's script any interpreter. For
    these a directory is shown only if it is one of programs.
    """
    waiting, looked_at = [program], set()
    while waiting:
        file = waiting.pop()
        if file in looked_at:
            continue
        looked_at.add(file)
        if all_homes.hold(file.parent):
            is_whole = (is_own and file == program) or _is_program(file)
            yield from _around(file, all_homes) if is_whole else [file]
        if file.is_symlink():
            real = Path(os.path.realpath(file.parent))
            waiting.append(Path(os.path.normpath(real / file.readlink())))
        elif (by := programs.interpreter(file)) is not None and os.access(by, os.X_OK):
            waiting.append(Path(by))


def _is_program(file: Path) -> bool:
    return file.parent.name in _PROGRAMS and os.access(file, os.X_OK)


def _around(file: Path, all_homes: Homes) -> Iterator[Path]:
    """Yields the directory of a program, or the venv or toolchain that it is part of."""
    folder, whole = file.parent, file.parent.parent
    if all_homes.is_broad(folder):
        yield file
        return
    yield folder
    if folder.name not in _PROGRAMS or Path(os.path.realpath(whole)) in all_homes.homes:
        return
    if all_homes.is_broad(whole):
        yield from (whole / part for part in _PARTS)
    elif any((whole / name).exists() for name in _LIBRARIES):
        yield whole
