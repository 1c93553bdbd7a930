"""Root writing into somebody else's directory, with no more rights than that account has.

Whoever owns a directory can put links into it, and swap them, at any time. Root would follow them
and write, or give away, any file of the machine. So root acts as the owner there: what a link leads
to then is the owner's already, or out of reach.
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

_MOST_LINKS = 40
"""Links on the way to a file, as the kernel allows (path_resolution(7))."""

_NO_GROUP = 65534
"""The group of an account that this machine does not know: nogroup, the kernel's overflow gid."""


class OwnerError(RuntimeError):
    """A directory in which root had better do nothing; the message says why."""


@dataclass(frozen=True)
class Owner:
    """An account to act as."""

    uid: int
    gid: int
    groups: tuple[int, ...]

    def of_process(self) -> dict[str, Any]:
        """What makes `subprocess` start a program as this account, for good."""
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}


def owner_of(directory: Path) -> Owner | None:
    """Whom this process must act as in `directory`; None where it is itself.

    Only root acts as others. Raises OwnerError where somebody besides root and the directory's
    owner could have it lead elsewhere: then the owner that root sees says nothing. OSError where
    the directory is not there.
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
    """In the block the process has the account's rights, and no more; None leaves its own.

    Of the whole process, so for one with a single thread. Raises OwnerError where it cannot be.
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
    """Everything that decides where a path leads, links and what they lead through included."""
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
