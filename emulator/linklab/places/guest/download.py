"""Downloads the locked Debian packages.

It asks the user's mirror first, then Debian's mirror, then Debian's archive of all versions. Every
file is checked by its hash, so the source need not be trusted.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from linklab.core.errors import LinklabError
from linklab.core.version import released
from linklab.places.guest.locked import Package

MIRROR = "LINKLAB_DEBIAN_MIRROR"
"""The environment variable for a mirror: a URL above `debian` and `debian-security`."""

_CURRENT = "https://deb.debian.org"
_PAST = "https://snapshot.debian.org"
"""Debian's current archive, and its archive of all versions."""

_SIDE_BY_SIDE = 4
_TIMEOUT_S = 30
_ATTEMPTS = 2
_PIECE_BYTES = 1 << 16


class DownloadError(LinklabError, RuntimeError):
    """A package cannot be downloaded. The message names it, each source's answer, and what to do."""


def sources(package: Package, snapshot: str, mirror: str | None) -> list[str]:
    """Returns the URLs of a package, in the order in which they are tried. Pure."""
    path = f"{package.archive}/{urllib.parse.quote(package.path)}"
    bases = [*([mirror.rstrip("/")] if mirror else []), _CURRENT]
    past = f"{package.archive}/{snapshot}/{urllib.parse.quote(package.path)}"
    return [*(f"{base}/{path}" for base in bases), f"{_PAST}/archive/{past}"]


def fetch(
    packages: Sequence[Package],
    snapshot: str,
    directory: Path,
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Downloads the files of `packages` into `directory`.

    `progress` is called with the number of bytes that have come since the last call. It is negative
    if a file has to be fetched again. Raises DownloadError, and OSError if a file cannot be written.
    """
    mirror = os.environ.get(MIRROR)
    if mirror and "://" not in mirror:
        raise DownloadError(f"{MIRROR}={mirror}: it has to be a URL, such as file:///mnt/mirror")
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        waiting = [
            pool.submit(_fetch, one, sources(one, snapshot, mirror), directory, progress)
            for one in packages
        ]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch(
    package: Package, urls: Sequence[str], directory: Path, progress: Callable[[int], None]
) -> None:
    refusals = []
    for url in urls:
        for attempt in range(_ATTEMPTS):
            try:
                with (directory / package.file_name).open("wb") as file:
                    refusal = _copied(package, url, file.write, progress)
            except urllib.error.HTTPError as error:
                refusal = str(error)
                break  # The server does not have it. Another try is useless.
            except (
                urllib.error.URLError,
                http.client.HTTPException,
                TimeoutError,
                ConnectionError,
            ) as error:
                refusal = str(getattr(error, "reason", error))
                time.sleep(attempt)
            else:
                if refusal is None:
                    return
        refusals.append(f"  {url}: {refusal}")
    (directory / package.file_name).unlink(missing_ok=True)
    raise DownloadError(
        f"{package.file_name} cannot be had:\n"
        + "\n".join(refusals)
        + f"\n  Is there a network? Else set {MIRROR} to a mirror that has it."
    )


def _copied(
    package: Package,
    url: str,
    write: Callable[[bytes], object],
    progress: Callable[[int], None],
) -> str | None:
    """Copies the response of `url`. Returns what is wrong with it, or None."""
    request = urllib.request.Request(url, headers={"User-Agent": f"linklab/{released() or 0}"})
    digest = hashlib.sha256()
    size = 0
    right = False
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            while piece := answer.read(_PIECE_BYTES):
                size += len(piece)
                progress(len(piece))
                if size > package.size_bytes:
                    return f"it is longer than {package.size_bytes} bytes"
                digest.update(piece)
                write(piece)
        if size < package.size_bytes:
            return f"it broke off after {size} of {package.size_bytes} bytes"
        right = digest.hexdigest() == package.sha256
        return None if right else "it has another SHA-256"
    finally:
        if not right:
            progress(-size)
