"""Reads the files of the lab's page, which ship with the package. `page/vendored.json` pins others' files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent / "page"

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, and its media type."""

    content: bytes
    kind: str


@functools.cache
def files() -> dict[str, PageFile]:
    """Returns all files by the path that a browser asks for; the page itself is `/`."""
    found = {
        f"/page/{file.relative_to(DIRECTORY)}": PageFile(file.read_bytes(), _KINDS[file.suffix])
        for file in sorted(DIRECTORY.rglob("*"))
        if file.suffix in _KINDS
    }
    return {"/": found.pop("/page/index.html"), **found}
