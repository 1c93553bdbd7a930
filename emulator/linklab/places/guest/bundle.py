"""All modules that a run imports in the guest, in one file.

To find, open and check a module costs the guest half a millisecond, and a run imports two hundred.
The file is made by the image's Python (bundling.py), kept in the cache, and made anew when a file
of this package has changed. `init.py` imports from it; what it lacks is imported as ever.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from linklab.core import whole_file
from linklab.core.paths import DATA, INSTALLED, PYTHON_PATH, in_cache
from linklab.places.guest import image, image_root, init

_PACKAGE: Final = PYTHON_PATH / "linklab"
_MAKER: Final = Path(__file__).with_name("bundling.py")


@functools.cache
def ensure(root: Path, session: str) -> Path | None:
    """The file for the image at `root` and the module that the guest begins with, made if need be; looked at once per process.

    None where the image's programs cannot be run here: the guest does without. Raises ImageError
    where they cannot import the package.
    """
    if not image_root.has_namespaces(root):
        return None
    # A cache may serve several checkouts, at other places.
    place = hashlib.sha256(os.fsencode(PYTHON_PATH)).hexdigest()[:16]
    path = in_cache("bundle") / place
    mark = fingerprint(root, session)
    try:
        with path.open("rb") as file:
            if file.read(len(mark)) == mark:
                return path
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    whole_file.write(path, mark + _made(root, session))
    return path


def fingerprint(root: Path, session: str) -> bytes:
    """What the file depends on, in 32 bytes: the image, the first module, and names, sizes and times of the package's
    modules."""
    digest = hashlib.sha256(f"{root.name}\0{session}".encode())
    for name, status in sorted(_modules(_PACKAGE)):
        digest.update(
            f"\0{name}\0{status.st_size}\0{status.st_mtime_ns}".encode("utf-8", "replace")
        )
    return digest.digest()


def _modules(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and not entry.name.endswith("_test.py"):
                yield entry.path, entry.stat()
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _modules(Path(entry.path))


def _made(root: Path, session: str) -> bytes:
    """The modules as init.py reads them."""
    work = PYTHON_PATH if INSTALLED else DATA
    within = Path(image_root.WORK, PYTHON_PATH.relative_to(work))
    words = [image.PYTHON, "-S", "-P", "-B", str(within / _MAKER.relative_to(PYTHON_PATH))]
    words += [session, str(within), init.PACKAGES, *init.SITE]
    with image_root.inside(root, work=work) as inside:
        done = subprocess.run(
            inside(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=image_root.ENVIRONMENT,
        )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise image_root.ImageError(f"the image's Python cannot import linklab: {said[-1]}")
    return done.stdout
