"""Lets root write into another account's directory with only that account's rights.

The owner of a directory can put symbolic links into it at any time. Root would follow them, and
overwrite or reveal any file of the machine. So root acts as the owner. Then a link only leads to
files that the owner can already reach.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linklab.core.errors import LinklabError

_MOST_LINKS = 40
"""The kernel's limit of symbolic links in a path (path_resolution(7))."""

_NO_GROUP = 65534
"""The group for an unknown account: nogroup, the kernel's overflow gid."""


class OwnerError(LinklabError, RuntimeError):
    """A directory in which root must not write. The message says why."""


@dataclass(frozen=True)
class Owner:
    """An account to act as."""

    uid: int
    gid: int
    groups: tuple[int, ...]

    def of_process(self) -> dict[str, Any]:
        """Returns the arguments with which `subprocess` starts a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}


def owner_of(directory: Path) -> Owner | None:
    """Returns the account as which this process must act in `directory`; None for its own.

    Only root acts as other accounts. Raises OwnerError if an account besides root and the owner
    could redirect the path, because then the owner may be the wrong one. Raises OSError if the
    directory is missing.
    """
    if os.geteuid() != 0:
        return None
    uid = directory.stat().st_uid
    for place, status in _way_to(directory):
        if status.st_uid not in (0, uid):
            raise OwnerError(
                f"{place} belongs to {_name(status.st_uid)}, who could have {directory} lead "
                f"elsewhere; allowed for root: a path of root's and {_name(uid)}'s directories"
            )
        shared = stat.S_ISDIR(status.st_mode) and status.st_mode & 0o022
        if uid == 0 and shared and not status.st_mode & stat.S_ISVTX:
            raise OwnerError(
                f"{place} can be written by others than root, who could have {directory} lead "
                f"elsewhere; allowed for root: {place} with mode 0755"
            )
    if uid == 0:
        return None
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        return Owner(uid, _NO_GROUP, ())
    return Owner(uid, account.pw_gid, tuple(os.getgrouplist(account.pw_name, account.pw_gid)))


@contextmanager
def acting_as(owner: Owner | None) -> Iterator[None]:
    """Gives the process only the account's rights during the block; None changes nothing.

    It changes the whole process, so there may be only one thread. Raises OwnerError if that fails.
    """
    if owner is None:
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    try:
        os.setgroups(owner.groups)
        os.setegid(owner.gid)
        os.seteuid(owner.uid)
    except OSError as error:
        _become(0, gid, groups)
        raise OwnerError(f"cannot act as {_name(owner.uid)}: {error.strerror}") from error
    try:
        yield
    finally:
        _become(0, gid, groups)


def _become(uid: int, gid: int, groups: list[int]) -> None:
    os.seteuid(uid)
    os.setegid(gid)
    os.setgroups(groups)


def _way_to(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields all directories and links that decide where a path leads, with their status."""
    ahead = list(reversed(directory.absolute().parts[1:]))
    at, links = Path("/"), 0
    yield at, at.lstat()
    while ahead:
        name = ahead.pop()
        if name == "..":
            at = at.parent
            continue
        status = (at / name).lstat()
        yield at / name, status
        if not stat.S_ISLNK(status.st_mode):
            at = at / name
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OwnerError(f"{directory}: too many links on the way")
        target = (at / name).readlink()
        if target.is_absolute():
            at = Path("/")
        ahead += reversed([part for part in target.parts if part != "/"])


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
