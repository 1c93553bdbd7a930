"""linklab's own version."""

from __future__ import annotations

import functools
import importlib.metadata

from linklab.core.paths import INSTALLED, REPOSITORY


def released() -> str | None:
    """linklab's version where it is the wheel's or an image's (its file VERSION), not a
    checkout's."""
    if INSTALLED:
        return importlib.metadata.version("linklab")
    try:
        return (REPOSITORY / "VERSION").read_text(encoding="ascii").strip()
    except OSError:
        return None


@functools.cache
def own_version() -> str:
    """linklab's version, in a checkout after its git tags; `0+unknown` where git cannot tell."""
    version = released()
    if version is not None:
        return version
    try:
        import setuptools_scm  # Slow to load, and needed in a checkout only.

        return setuptools_scm.get_version(root=str(REPOSITORY))
    except (ImportError, LookupError):
        return "0+unknown"
