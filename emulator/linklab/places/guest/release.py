"""Fetches a guest image or kernel that somebody has made already, from a release.

LINKLAB_RELEASE names where the files of a release lie: a URL below which are SHA256SUMS and what
is listed there. Without it nothing is fetched. An image is checked by its own hash besides
(image.py), whoever made it; a kernel is what the release says that it is.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

RELEASE = "LINKLAB_RELEASE"

_SUMS = "SHA256SUMS"
_SUMS_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_TIMEOUT_S = 30


class ReleaseError(RuntimeError):
    """The release does not bring the file; the message says why."""


def address() -> str | None:
    """The release's URL with a slash at its end, or None. ReleaseError for what is no URL."""
    said = os.environ.get(RELEASE)
    if not said:
        return None
    if not said.startswith(("https://", "http://", "file://")):
        raise ReleaseError(f"{RELEASE}={said}: it has to be a URL, such as https://example.org/v1")
    return said.rstrip("/") + "/"


def fetch(name: str, target: Path, progress: Callable[[float], None] = lambda _: None) -> None:
    """Puts the release's file of that name at `target`, checked by its hash. `progress` is told
    which fraction of it is there. Raises ReleaseError; then nothing is at `target`."""
    base = address()
    if base is None:
        raise ReleaseError(f"no release is named ({RELEASE})")
    try:
        expected = _sums(base).get(name)
        if expected is None:
            raise ReleaseError(f"{base}{_SUMS} does not list {name}")
        with _open(base + name) as answer, target.open("wb") as file:
            came = _copied(answer, file.write, progress)
        if came != expected:
            raise ReleaseError(f"{base}{name} does not have the SHA-256 that {_SUMS} says")
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError) as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(target):
            raise
        raise ReleaseError(f"{base}{name}: {getattr(error, 'reason', error)}") from error
    except ReleaseError:
        target.unlink(missing_ok=True)
        raise


def _open(url: str) -> http.client.HTTPResponse:
    answer: http.client.HTTPResponse = urllib.request.urlopen(url, timeout=_TIMEOUT_S)
    return answer


def _sums(base: str) -> dict[str, str]:
    with _open(base + _SUMS) as answer:
        lines = answer.read(_SUMS_BYTES).decode(errors="replace").splitlines()
    listed = (line.split(maxsplit=1) for line in lines)
    return {words[1].lstrip("*"): words[0] for words in listed if len(words) == 2}


def _copied(
    answer: http.client.HTTPResponse,
    write: Callable[[bytes], object],
    progress: Callable[[float], None],
) -> str:
    digest = hashlib.sha256()
    length = answer.headers.get("Content-Length") or ""
    total = int(length) if length.isdecimal() else 0
    there = 0
    while piece := answer.read(_PIECE_BYTES):
        digest.update(piece)
        write(piece)
        there += len(piece)
        progress(min(1.0, there / total) if total else 0.0)
    return digest.hexdigest()
