"""Computes how clients and the flows of others share a scenario's links, and how evenly. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from linklab.core import units
from linklab.core.bounded import ByName, Bytes, Count, Name, Rate, Ratio, SomeSeconds
from linklab.core.link_state import Direction
from linklab.runs.traffic_figures import TrafficFigures

ALL_LINKS: Final = "all links"
"""The key of what clients get over all links together. No link has a name with a space."""


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """Holds the figures of one of several clients. `client` is its number, from 1. `goodput_bps` is
    None if it transferred no file. `links_bytes` has its payload by link."""

    client: Count
    algorithm: Name
    download_s: SomeSeconds
    goodput_bps: Rate | None
    links_bytes: ByName[Bytes]

    @property
    def title(self) -> str:
        """Its number and algorithm."""
        return f"client {self.client} {self.algorithm}"

    def flat(self) -> dict[str, float]:
        """Returns the known figures by name."""
        known = ((name, getattr(self, name)) for name in NAMES)
        return {name: value for name, value in known if value is not None}


_SAYS_WHICH: Final = ("client", "algorithm", "links_bytes")

NAMES: Final = tuple(one.name for one in fields(ClientFigures) if one.name not in _SAYS_WHICH)
"""The names of a client's figures, as in tables and JSON."""


@dataclass(frozen=True, slots=True)
class ShareFigures:
    """Holds the rates of those who share a link, by their titles, and Jain's index of the rates.

    The index is 1 if all have the same rate, and 1/n if one of n has everything (Jain, Chiu, Hawe, "A
    quantitative measure of fairness and discrimination", DEC-TR-301, 1984).
    """

    rates_bps: ByName[Rate]
    jain: Ratio

    @property
    def shares(self) -> dict[str, float]:
        """Returns the part that each has of the sum."""
        total = sum(self.rates_bps.values())
        return {who: rate / total if total else 0.0 for who, rate in self.rates_bps.items()}

    @property
    def words(self) -> str:
        """Describes shares and index."""
        shown = ", ".join(
            f"{who} {units.percent(share, '.1')}" for who, share in self.shares.items()
        )
        return f"{shown}; Jain's index {self.jain:.3f}"


def jain(rates: Iterable[float]) -> float:
    """Returns Jain's index of at least one rate; 1 if all are 0."""
    values = list(rates)
    squares = sum(value * value for value in values)
    return min(1.0, sum(values) ** 2 / (len(values) * squares)) if squares else 1.0


def of_run(
    clients: Sequence[ClientFigures], flows: Sequence[TrafficFigures], direction: Direction
) -> dict[str, ShareFigures]:
    """Returns the shares of each link that several of the clients and bulk flows used in a direction.

    A rate is that of the client's download, or of the flow's time in the run. Several clients also
    share all links together.
    """
    found = {}
    if len(clients) > 1:
        goodputs = {one.title: one.goodput_bps or 0.0 for one in clients}
        found[ALL_LINKS] = _of(goodputs)
    for link in dict.fromkeys(link for one in clients for link in one.links_bytes):
        rates = {one.title: one.links_bytes.get(link, 0) * 8 / one.download_s for one in clients}
        for flow in flows:
            is_rival = (flow.kind, flow.link, flow.direction) == ("bulk", link, direction)
            if is_rival and flow.goodput_bps is not None:
                rates[f"flow {flow.title}"] = flow.goodput_bps
        if len(rates) > 1:
            found[link] = _of(rates)
    return found


def _of(rates_bps: Mapping[str, float]) -> ShareFigures:
    return ShareFigures(dict(rates_bps), jain(rates_bps.values()))
