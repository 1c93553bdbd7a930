"""Runs a program that may write some directories only and read all but some paths (Landlock).

`python -I -S landlock.py '{"write": [...], "hide": [...], "show": [...]}' PROGRAM ARGUMENT…`. Shown
paths may lie inside hidden ones, and hidden paths inside shown ones. The file imports nothing of
linklab, because it runs each time a guest boots.

Landlock has no rights for names in a directory that can be entered, nor for modes, owners and times
of files. For them the user's own rights stay (Linux, Documentation/userspace-api/landlock.rst).
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
import sys
from collections.abc import Collection, Iterator

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG = (1 << bit for bit in range(4, 9))
_MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER, _TRUNCATE, _IOCTL_DEV = (
    1 << bit for bit in range(9, 16)
)
READ = _EXECUTE | _READ_FILE
WRITE = (
    _WRITE_FILE
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_REG
    | _MAKE_SOCK
    | _MAKE_FIFO
    | _MAKE_SYM
    | _REFER
    | _TRUNCATE
)
_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""The rights that a rule for a file may have."""

LEAST_ABI = 3
"""From Linux 6.2. Before that, files without the right to write could be truncated."""

_NOT_BELOW = ("/dev", "/proc", "/sys")
"""The guest has its own. The host's directories show processes and disks."""

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Returns this kernel's version of Landlock; 0 if it has none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def readable(root: str, hidden: Collection[str]) -> Iterator[str]:
    """Yields the fewest paths below `root` whose trees cover everything except `hidden`."""
    if root in hidden:
        return
    if not any(one.startswith(root.rstrip("/") + "/") for one in hidden):
        yield root
        return
    try:
        with os.scandir(root) as entries:
            below = sorted(entry.path for entry in entries if not entry.is_symlink())
    except OSError:
        return
    for path in below:
        yield from readable(path, hidden)


def rules(
    write: Collection[str], hidden: Collection[str], shown: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Yields paths, and the rights at and below each."""
    for path in readable("/", {*hidden, *_NOT_BELOW}):
        yield path, READ
    yield "/proc/cpuinfo", READ
    for path in readable("/dev/shm", hidden):
        yield path, READ
    for root in shown:
        for path in readable(root, hidden):
            yield path, READ
    yield "/dev/null", READ | _WRITE_FILE
    for path in write:
        yield path, READ | WRITE


def confine(write: Collection[str], hidden: Collection[str], shown: Collection[str]) -> None:
    """Confines the calling thread and its future children for ever. Raises OSError."""
    version = abi()
    handled = READ | WRITE | _MAKE_CHAR | _MAKE_BLOCK | (_IOCTL_DEV if version >= 5 else 0)
    tcp = 0b11 if version >= 4 else 0  # Neither bind nor connect.
    scoped = 0b11 if version >= 6 else 0  # No abstract Unix sockets, no signals, to the outside.
    attributes = struct.pack("QQQ", handled, tcp, scoped)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    for path, rights in rules(write, hidden, shown):
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # It is gone or cannot be entered, so it stays out of reach.
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        allowed = rights if is_directory else rights & _FILE
        rule = struct.pack("=Qi", allowed, descriptor)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        os.close(descriptor)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result


def main() -> None:
    """Confines this process by its first argument, then executes the program."""
    wanted = json.loads(sys.argv[1])
    confine(wanted["write"], wanted["hide"], wanted["show"])
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
