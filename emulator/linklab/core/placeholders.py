"""Replaces `{name}` in commands and in H2O's configuration. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def filled(text: str, values: Mapping[str, object]) -> str:
    """Replaces the names that have a value. Other braces stay, also those within a value."""
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), text)
