"""Bundles all modules that a run imports in the guest into one file.

Finding, opening and checking a module takes the guest 0.5 ms, and a run imports 200. The image's
Python makes the bundle (bundling.py). The cache keeps it until a file of this package changes.
`init.py` imports from it. Modules that the bundle lacks are imported as usual.
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
    """Returns the bundle for the image at `root` and the guest's first module; makes it if needed.

    It is checked once per process. Returns None if the image's programs cannot run here; then the
    guest works without a bundle. Raises ImageError if they cannot import the package.
    """
    if not image_root.has_namespaces(root):
        return None
    # Several checkouts may share a cache.
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
    """Returns a hash (32 bytes) of the image, the first module, and the package's module files.

    Of the files it takes names, sizes and times.
    """
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
    """Makes the bundle that init.py reads."""
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
