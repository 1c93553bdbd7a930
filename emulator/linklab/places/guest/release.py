"""Fetches a guest image or kernel that somebody has made already, from a release.

LINKLAB_RELEASE names where the files of a release lie: a directory, or a URL of https. Without it
nothing is fetched. What comes is used where it is what image.lock says, whoever made it: a kernel by
its hash, an image by its tree's (image.py).
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

RELEASE = "LINKLAB_RELEASE"

_PIECE_BYTES = 1 << 20
_TIMEOUT_S = 30


class ReleaseError(RuntimeError):
    """The release does not bring the file; the message says why."""


def address() -> str | None:
    """The release's URL with a slash at its end, or None. ReleaseError where it is named otherwise."""
    said = os.environ.get(RELEASE)
    if not said:
        return None
    if said.startswith("/"):
        said = Path(said).as_uri()
    if not said.startswith(("https://", "file:///")):
        raise ReleaseError(
            f"{RELEASE}={said}: allowed: a directory, such as /media/linklab, or a URL of https, "
            "such as https://example.org/v1"
        )
    return said.rstrip("/") + "/"


def fetch(
    name: str,
    target: Path,
    *,
    most_bytes: int,
    sha256: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Puts the release's file of that name at `target`: at most so many bytes, with this hash unless
    it is None. `progress` is told which fraction of it is there. Raises ReleaseError; then nothing is
    at `target`."""
    base = address()
    if base is None:
        raise ReleaseError(f"no release is named ({RELEASE})")
    try:
        with _OPENER.open(base + name, timeout=_TIMEOUT_S) as answer, target.open("wb") as file:
            came = _copied(answer, file, most_bytes, progress)
        if came is None:
            raise ReleaseError(f"{base}{name} has more than {most_bytes} bytes")
        if sha256 not in (None, came):
            raise ReleaseError(f"{base}{name} does not have the SHA-256 that image.lock says")
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError) as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(target):
            raise
        raise ReleaseError(f"{base}{name}: {getattr(error, 'reason', error)}") from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise


class _HttpsAlone(urllib.request.HTTPRedirectHandler):
    """Follows to no other protocol."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError("it leads to what is no https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_HttpsAlone)


def _copied(
    answer: http.client.HTTPResponse,
    file: IO[bytes],
    most_bytes: int,
    progress: Callable[[float], None],
) -> str | None:
    """The SHA-256 of what came, all of which is in the file; None where that were too much."""
    digest = hashlib.sha256()
    length = answer.headers.get("Content-Length") or ""
    total = int(length[:20]) if length.isdecimal() else 0
    there = 0
    while piece := answer.read(_PIECE_BYTES):
        there += len(piece)
        if there > most_bytes:
            return None
        digest.update(piece)
        file.write(piece)
        progress(min(1.0, there / total) if total else 0.0)
    return digest.hexdigest()
