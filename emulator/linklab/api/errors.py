"""Defines the error of a request that cannot be carried out as given. Pure."""

from __future__ import annotations


class UsageError(ValueError):
    """A request cannot be carried out as given."""
