"""Starts the user's programs in the user's working directory, and keeps what they write there.

In the guest the host's files cannot be written. So a layer in memory lies over the directory, which
client and server share. At the end its files are copied into the run directory.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from linklab.places.guest.init import mount

WRITTEN: Final = "written"
"""The directory of a run directory with what the user's programs wrote where they started."""

LEFT_OUT: Final = "written-not-kept"
"""The file of a run directory with the names of written files that are not kept."""

MOST_BYTES: Final = 16_000_000
"""The most bytes that a run keeps."""

_LAYER: Final = Path("/run/linklab/over/work")


def begin(host_root: Path, directory: Path, scratch: Path) -> Path:
    """Returns the directory in which the user's programs start: `directory`, or `scratch` if it cannot
    be entered.

    With a root of the host's files, a layer over it takes the writes. There is none over a directory
    that holds mounts or `scratch`: /tmp is in memory anyway. Raises OSError.
    """
    place = host_root / directory.relative_to("/")
    if not os.access(place, os.X_OK) or not place.is_dir():  # The guest hides it.
        return scratch
    if host_root != Path("/") and not _holds_more(place, scratch, host_root):
        _LAYER.mkdir(parents=True)
        mount("work", str(_LAYER), "tmpfs")  # /run is an overlay itself, which can hold no layer.
        for name in ("upper", "work"):
            (_LAYER / name).mkdir()
        (_LAYER / "upper").chmod(stat.S_IMODE(place.stat().st_mode))
        words = f"lowerdir={_escaped(place)},upperdir={_LAYER}/upper,workdir={_LAYER}/work"
        mount("work", str(place), "overlay", 0, words)
    return directory


def _escaped(path: Path) -> str:
    """Returns a path as an option of overlayfs, which separates directories by colons."""
    return "".join(f"\\{one}" if one in ":,\\" else one for one in str(path))


def _holds_more(place: Path, scratch: Path, host_root: Path) -> bool:
    inside = [host_root / scratch.relative_to("/")]
    mounts = Path("/proc/self/mountinfo").read_text()
    inside += [Path(line.split()[4]) for line in mounts.splitlines()]
    return any(place in one.parents for one in inside)


def keep(run_dir: Path, layer: Path = _LAYER / "upper") -> None:
    """Copies the files of the layer into the run directory, up to `MOST_BYTES`. Raises OSError."""
    left_out, total = [], 0
    for folder, _, names in os.walk(layer):
        for name in sorted(names):
            file = Path(folder, name)
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):  # A link, or the mark of a removed file.
                continue
            total += status.st_size
            if total > MOST_BYTES:
                total -= status.st_size
                left_out.append(f"{file.relative_to(layer)}\n")
                continue
            kept = run_dir / WRITTEN / file.relative_to(layer)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, kept)
    if left_out:
        (run_dir / LEFT_OUT).write_text("".join(left_out))
