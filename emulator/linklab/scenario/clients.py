"""Defines the key `clients`: how many clients download at the same time, and by what. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from yaml.nodes import SequenceNode

from linklab.core import units
from linklab.models.keys import ROUND_TRIP
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import WORDS, count
from linklab.schema.rows import Row, Table

TESTED: Final = "tested"
"""The algorithm of the run: that of `-a`, or a user's program."""

MOST: Final = 8


@dataclass(frozen=True, slots=True)
class Downloader:
    """One of the clients. A round trip of its packets takes `added_rtt_s` longer on every link."""

    algorithm: str = TESTED
    added_rtt_s: float = 0.0

    @property
    def words(self) -> str:
        """Describes its algorithm, and its added round trip."""
        added = f" (rtt + {units.format_duration(self.added_rtt_s)})" if self.added_rtt_s else ""
        return self.algorithm + added


ALONE: Final = (Downloader(),)

_NUMBER: Final = count(1, MOST)

TABLE: Final = Table(
    Downloader,
    (
        Row("algorithm", "algorithm", WORDS, f"its algorithm; `{TESTED}` is the run's own"),
        Row(
            "added_rtt",
            "added_rtt_s",
            ROUND_TRIP,
            "how much longer its round trips take on every link, half of it each way",
            unset=0.0,
            default="0 s",
        ),
    ),
    about="One client of the list. An algorithm alone stands for a mapping of this key. Packets wait for half of "
    "`added_rtt` on the client's own cable: up before the link's queue, down behind it. It changes neither the link's "
    "rate nor its queue. The first client has none: its round trips are those of the links.",
)


class EachClient:
    """Reads and writes a number of clients, or a list of them."""

    allowed: Final = (
        f"{_NUMBER.allowed}; or a list of algorithms or mappings, see below, first `{TESTED}`"
    )

    def read(self, mapping: Mapping, key: str) -> tuple[Downloader, ...]:
        """Reads each client. Whether its algorithm is known, a run checks."""
        if not isinstance(mapping.values[key], SequenceNode):
            number: int = _NUMBER.read(mapping, key)
            return ALONE * number
        items = mapping.items(key, TABLE.keys, short="algorithm")
        if not 1 <= len(items) <= MOST:
            mapping.fail(key, f"{len(items)} clients; allowed: {_NUMBER.allowed}")
        found = tuple(map(TABLE.of, items))
        if found[0].algorithm != TESTED:
            first = found[0].algorithm
            mapping.fail(key, f"the first client is {first!r}; needed: {TESTED}, the run's own")
        if found[0].added_rtt_s:
            items[0].fail(
                "added_rtt", "the first client has the links' round trips; allowed: in the others"
            )
        return found

    def write(self, clients: tuple[Downloader, ...]) -> Any:
        """Returns the number, or the list."""
        if set(clients) == set(ALONE):
            return len(clients)
        return [TABLE.write(one) if one.added_rtt_s else one.algorithm for one in clients]
