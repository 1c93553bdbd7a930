"""Holds the base of linklab's own errors."""

from __future__ import annotations


class LinklabError(Exception):
    """The base of linklab's own errors. Files that cannot be read or written raise OSError."""
