"""Removes unsafe files that a guest left in its run directory, before a program reads them.

A program in the guest may have made links to the host's files, pipes that block a reader for ever,
and programs that run with their owner's rights.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from pathlib import Path


def remove_unsafe(directory: Path) -> list[str]:
    """Removes special files, links, and files with another name elsewhere from below `directory`.

    The owner can read and remove the rest; set-user-ID and set-group-ID bits are cleared. Nobody
    else may write there meanwhile. Returns the removed names, escaped. Raises OSError.
    """
    files: dict[tuple[int, int], list[tuple[Path, os.stat_result]]] = defaultdict(list)
    strange: list[Path] = []
    waiting = [directory]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                path, status = Path(entry.path), entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    _tame(path, status, 0o700)
                    waiting.append(path)
                elif stat.S_ISREG(status.st_mode):
                    files[status.st_dev, status.st_ino].append((path, status))
                else:
                    strange.append(path)
    for names in files.values():
        path, status = names[0]
        if status.st_nlink == len(names):
            _tame(path, status, 0o600)
        else:
            strange += (path for path, _ in names)
    for path in strange:
        path.unlink()
    return sorted(ascii(str(path.relative_to(directory))) for path in strange)


def _tame(path: Path, status: os.stat_result, least: int) -> None:
    mode = stat.S_IMODE(status.st_mode) & 0o777 | least
    if mode != stat.S_IMODE(status.st_mode):
        path.chmod(mode)
