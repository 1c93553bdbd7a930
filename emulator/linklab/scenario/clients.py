"""Defines the key `clients`: how many clients download at the same time, and by what. Pure."""

from __future__ import annotations

from typing import Any, Final

from yaml.nodes import SequenceNode

from linklab.schema.mapping import Mapping
from linklab.schema.quantities import count

TESTED: Final = "tested"
"""The algorithm of the run: that of `-a`, or a user's program."""

MOST: Final = 8

ALONE: Final = (TESTED,)

_NUMBER: Final = count(1, MOST)


class EachClient:
    """Reads and writes a number of clients, or a list of their algorithms."""

    allowed: Final = f"{_NUMBER.allowed}; or a list of algorithms, first `{TESTED}`, the run's own"

    def read(self, mapping: Mapping, key: str) -> tuple[str, ...]:
        """Reads the algorithm of each client. Whether it is known, a run checks."""
        if not isinstance(mapping.values[key], SequenceNode):
            number: int = _NUMBER.read(mapping, key)
            return (TESTED,) * number
        names = tuple(mapping.each(key, str.strip))
        if not 1 <= len(names) <= MOST:
            mapping.fail(key, f"{len(names)} clients; allowed: {_NUMBER.allowed}")
        if names[0] != TESTED:
            mapping.fail(key, f"the first client is {names[0]!r}; needed: {TESTED}, the run's own")
        return names

    def write(self, clients: tuple[str, ...]) -> Any:
        """Returns the number, or the list."""
        return len(clients) if set(clients) == {TESTED} else list(clients)
