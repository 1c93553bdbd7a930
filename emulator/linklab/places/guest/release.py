"""Fetches a finished guest image or kernel from a release.

LINKLAB_RELEASE names the directory or https URL with the files of a release. Without it nothing is
fetched. A file is used only if its hash is the one of image.lock, so its maker need not be trusted.
An image is checked by the hash of its tree (image.py).
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

from linklab.core.errors import LinklabError

RELEASE = "LINKLAB_RELEASE"

_PIECE_BYTES = 1 << 20
_TIMEOUT_S = 30


class ReleaseError(LinklabError, RuntimeError):
    """The release does not give the file. The message says why."""


def address() -> str | None:
    """Returns the release's URL with a slash at its end; None if none is named.

    Raises ReleaseError if the name is neither a directory nor an https URL.
    """
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
    """Fetches the release's file `name` to `target`.

    The file has at most `most_bytes`, and the hash `sha256` unless that is None. `progress` is
    called with the finished fraction. Raises ReleaseError; then there is no file at `target`.
    """
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
    """Follows redirects to https only."""

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
    """Copies a response to a file, and returns its SHA-256; None if it is too large."""
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
