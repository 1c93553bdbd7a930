"""Finds linklab's own version."""

from __future__ import annotations

import functools
import importlib.metadata

from linklab.core.paths import INSTALLED, REPOSITORY


def released() -> str | None:
    """Returns the version of a wheel or a container image (its file VERSION); None in a checkout."""
    if INSTALLED:
        return importlib.metadata.version("linklab")
    try:
        return (REPOSITORY / "VERSION").read_text(encoding="ascii").strip()
    except OSError:
        return None


@functools.cache
def own_version() -> str:
    """Returns linklab's version; in a checkout by git tags, or `0+unknown` if git does not know."""
    version = released()
    if version is not None:
        return version
    try:
        import setuptools_scm  # It is slow to load and only needed in a checkout.

        return setuptools_scm.get_version(root=str(REPOSITORY))
    except (ImportError, LookupError):
        return "0+unknown"
