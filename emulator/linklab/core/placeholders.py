"""Fills `{name}` in texts that people write: commands, and H2O's configuration. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def filled(text: str, values: Mapping[str, object]) -> str:
    """The text with the names that have a value filled in; other braces stay as they are.

    A value is not looked through: braces in it stay too.
    """
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), text)
